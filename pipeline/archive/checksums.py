"""A checksum that does not depend on the order of rows, nor on columns that are null: one that a later version of a
kind adds changes none of those from before."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

# Sums of so many bits of each hash stay within 64 bits for 8 million rows of a block, by far more than it has.
SHIFT = 24


def digests(columns: Sequence[str], prefix: str) -> list[Column]:
    """Two aggregates, `<prefix>_xor` and `<prefix>_sum`; `told` makes a text of both."""
    # Which column a value is in counts: neighbours that change places are another row.
    placed = [F.when(F.col(name).isNotNull(), F.struct(F.lit(at), F.col(name))) for at, name in enumerate(columns)]
    hashed = F.xxhash64(*placed)
    return [
        F.coalesce(F.bit_xor(hashed), F.lit(0)).alias(f"{prefix}_xor"),
        F.coalesce(F.sum(F.shiftrightunsigned(hashed, SHIFT)), F.lit(0)).alias(f"{prefix}_sum"),
    ]


def told(xor: int, total: int) -> str:
    return f"{xor & 0xFFFFFFFFFFFFFFFF:016x}.{total:x}"
