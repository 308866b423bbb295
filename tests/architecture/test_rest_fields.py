"""docs/reference/rest.md names every field of the REST interface and every code that a field may hold."""

import os
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from drf_spectacular.drainage import reset_generator_stats
from drf_spectacular.generators import SchemaGenerator

from tests.architecture.test_surface import ROOT

FILE = ROOT / "docs" / "reference" / "rest.md"
BEGIN, END = (
    "<!-- fields: written by tests/architecture/test_rest_fields.py -->\n\n",
    "\n<!-- end of fields -->\n",
)
# A page of a list, whose fields are those of every list.
LISTS = re.compile(r"^Paginated.*List$")


def codes_of(described: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    """The values that a field may hold, where they are words of a list."""
    yield from (str(code) for code in described.get("enum", []) if code not in ("", None))
    if reference := described.get("$ref"):
        yield from (str(code) for code in schemas[reference.rpartition("/")[2]].get("enum", []) if code)
    inner = [described["items"]] if described.get("items") else []
    for part in (*described.get("allOf", []), *described.get("oneOf", []), *inner):
        yield from codes_of(part, schemas)


def fields() -> dict[str, dict[str, list[str]]]:
    """Of each body, however it is sent: its fields with their codes."""
    schemas = SchemaGenerator().get_schema(request=None, public=True)["components"]["schemas"]
    found: dict[str, dict[str, list[str]]] = {}
    for name in sorted(schemas):
        if LISTS.match(name):
            continue
        body = found.setdefault(name.removeprefix("Patched").removesuffix("Request"), {})
        for field, described in schemas[name].get("properties", {}).items():
            codes = body.setdefault(field, [])
            codes += [code for code in codes_of(described, schemas) if code not in codes]
    return {name: body for name, body in found.items() if body}


def line(name: str, body: dict[str, list[str]]) -> str:
    told = [
        f"`{field}`" + (f" ({' · '.join(f'`{code}`' for code in codes)})" if codes else "")
        for field, codes in body.items()
    ]
    text = f"- **{name}**: {', '.join(told)}"
    return textwrap.fill(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def test_no_two_parts_of_the_description_share_a_name(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two bodies with one name the description has one, and clients made from it lose fields of the
    other."""
    reset_generator_stats()  # what was said before is not said again
    SchemaGenerator().get_schema(request=None, public=True)
    assert capsys.readouterr().err == ""


def test_the_documentation_names_each_field_and_each_code(db: None) -> None:
    text = FILE.read_text("utf-8")
    before, _begin, rest = text.partition(BEGIN)
    told, _end, after = rest.partition(END)
    received = "".join(f"{line(name, body)}\n" for name, body in fields().items())
    if os.environ.get("MA_TEST_APPROVE") == "1":
        FILE.write_text(f"{before}{BEGIN}{received}{END}{after}", "utf-8")
        told = received
    assert told == received, "fields changed; if it was meant: MA_TEST_APPROVE=1 ./ma test tests/architecture"
