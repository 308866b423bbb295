"""A checksum that does not depend on the order of rows, nor on columns that are null: one that a later
version of a kind adds changes none of those from before."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

# Sums of so many bits of each hash stay within 64 bits for 8 million rows of a block, by far more than it
# has.
SHIFT = 24


def digests(columns: Sequence[str], prefix: str) -> list[Column]:
    """Two aggregates, `<prefix>_xor` and `<prefix>_sum`; `told` makes a text of both. Written as SQL: part by
    part hundreds of calls to the JVM would make them, for each block anew."""
    # Which column a value is in counts: neighbours that change places are another row.
    placed = (
        f"CASE WHEN `{name}` IS NOT NULL THEN struct({at}, `{name}`) END" for at, name in enumerate(columns)
    )
    hashed = f"xxhash64({', '.join(placed)})"
    return [
        F.expr(f"coalesce(bit_xor({hashed}), 0L)").alias(f"{prefix}_xor"),
        F.expr(f"coalesce(sum(shiftrightunsigned({hashed}, {SHIFT})), 0L)").alias(f"{prefix}_sum"),
    ]


def told(xor: int, total: int) -> str:
    return f"{xor & 0xFFFFFFFFFFFFFFFF:016x}.{total:x}"
