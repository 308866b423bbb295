"""What dead letters have in common that messages of the same setting which failed and recovered have not."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipeline.results import POISON_COUNTS, POISON_PROFILE, shaped

# Of one property of a setting, kept by each run: the most frequent ones. Ids, different in each message, are
# none.
MOST_VALUES = 200
MOST_TEXT = 60  # characters of a value
LONGEST_VALUE = 300  # of it is looked at
LONGEST_NAME = 300  # of a property; the MA's table holds no longer one
# Of one setting, shown: those with at least so many dead letters, and so much more often dead than others.
MOST_MARKS = 20
ENOUGH_DEAD = 5
LEAST_LIFT = 1.2
# Endings that a process may hold: some 200 MB.
MOST_HELD = 2_000_000
SIZE = "body_size"
ALL = ""  # as property: every ending of the setting
_MESSAGE = ("setting_key", "message_key")


def endings(letters: DataFrame, recovered: DataFrame) -> DataFrame:
    """How often each message died, and was handled well after it had failed."""
    known = F.col("message_key") != ""
    dead = letters.where(known).select(*_MESSAGE, F.lit(1).alias("dead"), F.lit(0).alias("recovered"))
    well = recovered.where(known).select(*_MESSAGE, F.lit(0).alias("dead"), F.lit(1).alias("recovered"))
    return (
        dead.unionByName(well)
        .groupBy(*_MESSAGE)
        .agg(F.sum("dead").alias("dead"), F.sum("recovered").alias("recovered"))
    )


def described(endings: DataFrame, protocols: DataFrame, *, held: bool = False) -> DataFrame:
    """With `properties` and `body_size` as the latest protocol of the message has them: of both kinds from
    the same source, so that no difference of the sources separates them. A message without a protocol is left
    out. Messages are told by 64 bits of their keys. `held`: every task holds all endings, so that few
    protocols are shuffled."""
    message = F.xxhash64(*_MESSAGE).alias("_message")
    ended = endings.select(message, "setting_key", "dead", "recovered")
    told = protocols.where(F.col("message_key") != "").select(
        message, F.struct("occurred_at", "number", "properties", SIZE).alias("told")
    )
    joined = told.join(F.broadcast(ended) if held else ended, "_message").groupBy("_message")
    latest = joined.agg(
        F.max("told").alias("told"), *(F.first(name).alias(name) for name in ended.columns[1:])
    )
    return latest.select("setting_key", "dead", "recovered", "told.properties", f"told.{SIZE}")


def poison_counts(described: DataFrame) -> DataFrame:
    """Endings by property and value; every setting's all as property ALL."""
    read = F.from_json("properties", "map<string,string>")
    sized = F.create_map(F.lit(SIZE), F.col(SIZE).cast("string"))
    pairs = F.concat(
        F.map_entries(sized), F.coalesce(F.map_entries(read), F.array()), F.array(_pair(ALL, ""))
    )
    marks = described.select("setting_key", "dead", "recovered", F.explode(pairs).alias("pair"))
    known = marks.where(F.col("pair.value").isNotNull() & (F.length("pair.key") <= LONGEST_NAME))
    # By value before its bucket is told: most endings have a value that others have too.
    value = F.substring("pair.value", 1, LONGEST_VALUE)
    by_value = _summed(known.withColumn("property", F.col("pair.key")).withColumn("value", value), "value")
    counted = _summed(by_value.withColumn("value_bucket", value_bucket(F.col("value"))), "value_bucket")
    frequent = Window.partitionBy("setting_key", "property").orderBy(
        F.desc(F.col("dead") + F.col("recovered")), "value_bucket"
    )
    most = counted.withColumn("place", F.row_number().over(frequent)).where(F.col("place") <= MOST_VALUES)
    return shaped(most, POISON_COUNTS)


def _summed(rows: DataFrame, by: str) -> DataFrame:
    return rows.groupBy("setting_key", "property", by).agg(
        F.sum("dead").alias("dead"), F.sum("recovered").alias("recovered")
    )


def _pair(name: str, value: str) -> Column:
    return F.struct(F.lit(name).alias("key"), F.lit(value).alias("value"))


def value_bucket(value: Column) -> Column:
    """A text as it is, up to MOST_TEXT characters; a number from 16 on as its power of two: `[16, 32)`."""
    number = value.try_cast("double")
    size = F.abs(number)
    exponent = F.floor(F.log2(size))
    low, high = (F.pow(F.lit(2.0), exponent + up).cast("long").cast("string") for up in (0, 1))
    power = F.concat(F.when(number < 0, "-").otherwise(""), F.lit("["), low, F.lit(", "), high, F.lit(")"))
    return F.when((size >= 16) & (size < 2.0**60), power).otherwise(F.substring(value, 1, MOST_TEXT))


def poison_profile(counts: DataFrame) -> DataFrame:
    """`support`: the part of the setting's endings that have it. `lift`: how many times as often as the
    setting's others on the whole they are dead. (R. Agrawal and others, Mining Association Rules, SIGMOD
    1993, for the support and confidence of a rule; S. Brin and others, Dynamic Itemset Counting, SIGMOD 1997,
    for the lift.)"""
    summed = _summed(counts, "value_bucket")
    everything = summed.where(F.col("property") == ALL).select(
        "setting_key", F.col("dead").alias("all_dead"), (F.col("dead") + F.col("recovered")).alias("all")
    )
    endings = F.col("dead") + F.col("recovered")
    marks = (
        summed.where(F.col("property") != ALL)
        .join(F.broadcast(everything), "setting_key")
        .withColumn("support", endings / F.col("all"))
        .withColumn("lift", (F.col("dead") / endings) / (F.col("all_dead") / F.col("all")))
        .where((F.col("dead") >= ENOUGH_DEAD) & (F.col("lift") >= LEAST_LIFT))
    )
    strongest = Window.partitionBy("setting_key").orderBy(
        F.desc("lift"), F.desc("dead"), "property", "value_bucket"
    )
    most = marks.withColumn("place", F.row_number().over(strongest)).where(F.col("place") <= MOST_MARKS)
    return shaped(most, POISON_PROFILE)
