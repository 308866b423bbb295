"""Frames in the shape of a schema."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType


def shaped(frame: DataFrame, schema: StructType) -> DataFrame:
    """Its columns, in the order and of the types of `schema`. A column that is missing is an error of the
    job."""
    return frame.select(*(F.col(field.name).cast(field.dataType).alias(field.name) for field in schema))


def told(session: SparkSession, rows: Iterable[Mapping[str, Any]], schema: StructType) -> DataFrame:
    """A few rows, by the names of `schema`; what one does not say is null. Inside the plan of the query: rows
    that Python hands over would start a worker of Python for each."""
    text = json.dumps(list(rows), default=_text)
    return session.range(1).select(F.inline(F.from_json(F.lit(text), ArrayType(schema))))


def _text(value: Any) -> str:
    return str(value.isoformat())
