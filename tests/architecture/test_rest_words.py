"""The description of the REST interface keeps to the glossary: docstrings of views, bodies and operations,
and help texts of fields. Remote commands show it."""

from collections.abc import Iterator
from typing import Any

from drf_spectacular.generators import SchemaGenerator

from tests.unit.test_user_words import is_old


def descriptions(described: Any, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(described, dict):
        for name, value in described.items():
            if name == "description" and isinstance(value, str):
                # The last lines list codes with their words of the catalogue.
                yield place, "\n".join(line for line in value.splitlines() if not line.startswith("* `"))
            else:
                yield from descriptions(value, f"{place}/{name}")
    elif isinstance(described, list):
        for number, value in enumerate(described):
            yield from descriptions(value, f"{place}/{number}")


def test_no_description_speaks_the_old_language(db: None) -> None:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    found = list(descriptions(schema))
    assert len(found) > 100
    assert [(place, text) for place, text in found if is_old(text)] == []
