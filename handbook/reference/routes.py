"""Routes of the REST interface: what the OpenAPI description says of each, with an example made from it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drf_spectacular.generators import SchemaGenerator

from handbook import markdown

METHODS = ("get", "post", "put", "patch", "delete")
FORMATS = {
    "date-time": "2026-11-26T09:14:00Z",
    "date": "2026-11-26",
    "time": "02:30:00",
    "uuid": "07434870-bf32-402b-95dc-f72b0548917f",
    "uri": "https://ma.example/",
    "email": "operator@example.org",
    "binary": "…",
}
# Texts by the name of their field or parameter, which a reader takes for real ones.
TEXTS = {"key": "orders", "setting": "orders", "server": "srv-1", "agent": "shop.orders", "name": "shop"}
# Of lists; the description has the addresses of another site.
PAGING = {"next": "https://ma.example/api/v1/…/?cursor=cD0xMjM", "previous": None}
DEEPEST = 5
# Not required by itself: it, or a list, or a filter has to be there.
ONE_OF_SEVERAL = "all"
WHO = {
    "personToken": "API token of a user",
    "serverToken": "server token",
    "personOrServerToken": "API token of a user, or server token",
}


def pages() -> Mapping[str, str]:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    by_tag: dict[str, list[str]] = {}
    for path, operations in sorted(schema["paths"].items()):
        for method in METHODS:
            if method in operations:
                operation = operations[method]
                by_tag.setdefault(operation["tags"][0], []).extend(
                    _section(path, method, operation, schema["components"]["schemas"])
                )
    found = {f"routes/{tag}": markdown.page(f"{tag}", *parts) for tag, parts in by_tag.items()}
    toc = "\n".join(sorted(by_tag))
    return {
        **found,
        "routes/index": markdown.page(
            "REST routes",
            "One page for each resource. Examples are made from the OpenAPI description: the values are "
            "samples, not those of a real site. `$MA` is the address of the site, `$TOKEN` a token.",
            markdown.block("{toctree}", f":maxdepth: 1\n\n{toc}"),
        ),
    }


def _section(
    path: str, method: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]
) -> Iterator[str]:
    yield f"## {method.upper()} {markdown.plain(path)}"
    yield markdown.plain(str(operation.get("description", "")))
    ways = [WHO.get(name, name) for way in operation.get("security", []) for name in way]
    yield f"Authentication: {'; '.join(ways)}." if ways else "No authentication."
    if queries := [each for each in operation.get("parameters", []) if each["in"] == "query"]:
        rows = [(markdown.code(each["name"]), _values(each), _about(each)) for each in queries]
        yield markdown.table(("parameter", "values", "description"), rows)
    body = _content(operation.get("requestBody", {}))
    yield markdown.block("sh", request(path, method, body and example(body, schemas, sent=True)))
    for status, answer in sorted(operation["responses"].items()):
        yield from _answer(status, answer, schemas)


def _answer(status: str, answer: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    text = markdown.plain(str(answer.get("description", "")))
    yield f"Answer {status}" + (f": {text}" if text else "")
    content = _content(answer)
    if content is not None and status.startswith("2"):
        yield markdown.block("json", as_json(example(content, schemas)))


def request(path: str, method: str, body: Any) -> str:
    """The call as a shell takes it."""
    place = re.sub(r"\{(\w+)\}", lambda found: TEXTS.get(found[1], found[1].upper()), path)
    words = ['curl -H "Authorization: Bearer $TOKEN"']
    if method != "get" and not (method == "post" and body is not None):
        words.append(f"-X {method.upper()}")
    if body is not None:
        words.append('-H "Content-Type: application/json"')
        words.append("-d '" + as_json(body).replace("'", "'\\''") + "'")
    return " ".join([*words, f'"$MA{place}"'])


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def example(
    schema: Mapping[str, Any], schemas: Mapping[str, Any], *, sent: bool = False, deep: int = 0
) -> Any:
    """A value that the schema allows. `sent`: without fields that only answers have."""
    if reference := schema.get("$ref"):
        return example(schemas[reference.rpartition("/")[2]], schemas, sent=sent, deep=deep)
    if "example" in schema:
        return schema["example"]
    for together in ("allOf", "oneOf", "anyOf"):
        if parts := schema.get(together):
            return example(parts[0], schemas, sent=sent, deep=deep)
    if words := [word for word in schema.get("enum", ()) if word not in ("", None)]:
        return words[0]
    kind = schema.get("type")
    if kind == "array":
        return [example(schema["items"], schemas, sent=sent, deep=deep + 1)] if deep < DEEPEST else []
    if kind == "object" or "properties" in schema:
        return _object(schema, schemas, sent, deep)
    return _simple(schema)


def _object(schema: Mapping[str, Any], schemas: Mapping[str, Any], sent: bool, deep: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if deep >= DEEPEST:
        return found
    required: Sequence[str] = schema.get("required", ())
    for name, described in schema.get("properties", {}).items():
        left_out = required and name not in required and name != ONE_OF_SEVERAL
        if sent and (described.get("readOnly") or left_out):
            continue
        all_of_it = sent and name == ONE_OF_SEVERAL
        value = all_of_it or example(described, schemas, sent=sent, deep=deep + 1)
        found[name] = TEXTS[name] if value == "text" and name in TEXTS else PAGING.get(name, value)
    more = schema.get("additionalProperties")
    if not found and isinstance(more, Mapping) and more:
        found["name"] = example(more, schemas, sent=sent, deep=deep + 1)
    return found


def _simple(schema: Mapping[str, Any]) -> Any:
    if "default" in schema and schema["default"] is not None:
        return schema["default"]
    match schema.get("type"):
        case "integer":
            return max(1, int(schema.get("minimum", 1)))
        case "number":
            return max(0.5, float(schema.get("minimum", 0.5)))
        case "boolean":
            return True
        case "string":
            return FORMATS.get(schema.get("format", ""), "text")
    return {}


def _content(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Of several kinds of content JSON."""
    content: Mapping[str, Any] = part.get("content", {})
    found: Mapping[str, Any] | None = content.get("application/json", {}).get("schema")
    return found


def _values(parameter: Mapping[str, Any]) -> str:
    schema = parameter.get("schema", {})
    if words := schema.get("enum") or schema.get("items", {}).get("enum"):
        return ", ".join(markdown.code(str(word)) for word in words if word not in ("", None))
    return str(schema.get("format") or schema.get("type", ""))


def _about(parameter: Mapping[str, Any]) -> str:
    text = str(parameter.get("description", ""))
    if str(parameter.get("schema", {}).get("enum", "")) and "* `" in text:
        text = text.partition("* `")[0]
    return markdown.plain(text.strip())
