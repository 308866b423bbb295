"""Properties of dead letters without the values that settings mask, by the rule of the console: whatever the
setting of a letter masks and the one in whose queue it lies; of settings that are gone, whatever any setting
masks."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contract.names import DEAD_LETTER_PREFIX

# Every value is archived as text.
PROPERTIES = "array<struct<name: string, type: string, value: string>>"


def masked(letters: DataFrame, masks: Mapping[str, Sequence[str]]) -> DataFrame:
    """`masks`: {setting key: names} of every setting that exists. A body of which something is masked is left
    out."""
    names = _names(masks)
    told = F.transform(F.from_json("properties", PROPERTIES), lambda each: _told(each, names))
    return letters.withColumns(
        {
            "properties": F.to_json(told),
            "body": F.when(F.size(names) == 0, F.col("body")).otherwise(F.lit(None)),
        }
    )


def _told(each: Column, names: Column) -> Column:
    hidden = F.array_contains(names, each["name"])
    nothing = F.lit(None).cast("string")
    return F.struct(
        each["name"].alias("name"),
        F.when(hidden, nothing).otherwise(each["type"]).alias("type"),
        F.when(hidden, nothing).otherwise(each["value"]).alias("value"),
    )


def _names(masks: Mapping[str, Sequence[str]]) -> Column:
    every = _texts(sorted({name for names in masks.values() for name in names}))
    if not masks:
        return every
    lists = F.map_from_arrays(_texts(list(masks)), F.array(*(_texts(names) for names in masks.values())))
    said = F.try_element_at(lists, F.col("setting_key"))
    lies = F.try_element_at(
        lists, F.regexp_replace("queue", f"^{DEAD_LETTER_PREFIX.replace('.', '[.]')}", "")
    )
    nothing = _texts([])
    both = F.concat(F.coalesce(said, nothing), F.coalesce(lies, nothing))
    return F.when(said.isNull() & lies.isNull(), every).otherwise(both)


def _texts(texts: Sequence[str]) -> Column:
    return F.array(*map(F.lit, texts)).cast("array<string>")
