"""A frame in the shape of a schema."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType


def shaped(frame: DataFrame, schema: StructType) -> DataFrame:
    """Its columns, in the order and of the types of `schema`. A column that is missing is an error of the job."""
    return frame.select(*(F.col(field.name).cast(field.dataType).alias(field.name) for field in schema))
