"""Remote commands out of a description: nouns, verbs and inputs, by rules alone."""

from typing import Any

from console.rest.commands import EXTENSION, RemoteCommand, commands_of

PERSON: dict[str, Any] = {"security": [{"personToken": []}]}
NOTHING: dict[str, Any] = {"responses": {"204": {}}}
OBJECT: dict[str, Any] = {"responses": {"200": {"content": {"application/json": {"schema": {}}}}}}
LIST: dict[str, Any] = {
    "responses": {"200": {"content": {"application/json": {"schema": {"type": "array"}}}}}
}


def made(paths: dict[str, dict[str, Any]], **schemas: Any) -> list[RemoteCommand]:
    full = {f"/api/v1/{path}/": operations for path, operations in paths.items()}
    return commands_of({"paths": full, "components": {"schemas": schemas}})


def names(paths: dict[str, dict[str, Any]]) -> list[str]:
    return [f"{each.noun} {each.verb} {each.answer}" for each in made(paths)]


def route(kind: dict[str, Any], **more: Any) -> dict[str, Any]:
    return PERSON | kind | more


def test_the_address_is_the_noun_and_the_method_the_verb() -> None:
    paths = {
        "things": {"get": route(LIST), "post": route(OBJECT)},
        "things/{id}": {"get": route(OBJECT), "patch": route(OBJECT), "delete": route(NOTHING)},
        "health": {"get": route(OBJECT)},
    }
    assert names(paths) == [
        "health get object",
        "things change object",
        "things create object",
        "things delete none",
        "things get object",
        "things list list",
    ]


def test_what_follows_is_the_verb_unless_rows_lie_below_it() -> None:
    paths = {
        "things": {"get": route(LIST)},
        "things/export": {"get": route(OBJECT)},
        "things/runs": {"get": route(LIST)},
        "things/runs/{id}": {"get": route(OBJECT)},
        "things/{id}/parts": {"get": route(LIST)},
        "things/{id}/whole": {"get": route(OBJECT), "post": route(OBJECT)},
    }
    assert names(paths) == [
        "things export object",
        "things list list",
        "things parts list",
        "things whole object",
        "things whole-create object",
        "things-runs get object",
        "things-runs list list",
    ]


def test_an_operation_gives_its_verb_and_says_what_the_body_holds() -> None:
    body = {
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Ask"}}}}
    }
    does = {EXTENSION: {"message.hold": {"action": "hold"}, "message.try_now": {"action": "now"}}}
    fields = {"action": {"type": "string"}, "reason": {"type": "string"}, "id": {"readOnly": True}}
    found = made(
        {"things/{id}/waiting": {"get": route(LIST), "post": route(OBJECT, **body, **does)}},
        Ask={"properties": fields, "required": ["reason"]},
    )
    assert [(each.verb, each.operation, each.fixed) for each in found] == [
        ("hold", "message.hold", {"action": "hold"}),
        ("try-now", "message.try_now", {"action": "now"}),
        ("waiting", "", {}),
    ]
    assert [(each.name, each.place, each.needed) for each in found[0].inputs] == [("reason", "body", True)]


def test_of_two_with_one_name_the_one_without_a_row_is_about_many() -> None:
    paths = {"things/edit": {"post": route(OBJECT)}, "things/{id}/edit": {"post": route(OBJECT)}}
    assert names(paths) == ["things edit object", "things edit-many object"]


def test_what_only_a_server_may_ask_is_none() -> None:
    both: dict[str, Any] = {"security": [{"personOrServerToken": []}]}
    paths = {
        "beat": {"post": OBJECT | {"security": [{"serverToken": []}]}},
        "answers": {"post": OBJECT | both},
        "open": {"get": OBJECT | {"security": []}},
    }
    assert names(paths) == ["answers create object", "open get object"]


def test_an_input_has_its_type_through_references_and_unions() -> None:
    fields = {
        "state": {"oneOf": [{"$ref": "#/components/schemas/State"}, {"$ref": "#/components/schemas/Blank"}]},
        "one": {"allOf": [{"$ref": "#/components/schemas/State"}], "description": "Which.\n\n* `a` - A"},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "codes": {"type": "array", "items": {"$ref": "#/components/schemas/State"}},
        "inner": {"$ref": "#/components/schemas/Inner"},
        "many": {"type": "array", "items": {"$ref": "#/components/schemas/Inner"}},
        "anything": {},
        "at": {"type": "string", "format": "date-time", "nullable": True},
    }
    body = {"requestBody": {"content": {"application/json": {"schema": {"properties": fields}}}}}
    (found,) = made(
        {"things": {"post": route(NOTHING, **body)}},
        State={"type": "string", "enum": ["a", "b"]},
        Blank={"enum": [""]},
        Inner={"type": "object"},
    )
    assert {each.name: (each.type, each.several, list(each.choices)) for each in found.inputs} == {
        "state": ("string", False, ["a", "b"]),
        "one": ("string", False, ["a", "b"]),
        "ids": ("integer", True, []),
        "codes": ("string", True, ["a", "b"]),
        "inner": ("json", False, []),
        "many": ("json", False, []),
        "anything": ("json", False, []),
        "at": ("string", False, []),
    }
    assert {each.name: each.about for each in found.inputs}["one"] == "Which."


def test_a_description_that_refers_to_itself_ends() -> None:
    body = {"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}}
    (found,) = made(
        {"things": {"post": route(NOTHING, **body)}}, A={"allOf": [{"$ref": "#/components/schemas/A"}]}
    )
    assert found.inputs == []
