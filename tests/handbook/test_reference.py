"""Pages of the reference: complete, and what the guides say beside them agrees."""

import ast
import json
import re

import pytest
from django.urls import resolve
from django.utils import translation

from console.audit import text
from deploy.config import HANDED_ON, REPOSITORY
from handbook.reference import codes, environment, fields
from handbook.reference.environment import FILES, GUIDE, NAME, ROW, Variable, variables
from handbook.reference.routes import example, request
from tests.architecture.approval import FOLDER as APPROVED


@pytest.fixture(autouse=True)
def begins_in_english() -> None:
    """Whatever language a page of the test before was in: the handbook's own pages begin so, too."""
    translation.activate("en")


def of_program(program: str) -> list[Variable]:
    return variables(ast.parse((REPOSITORY / FILES[program]).read_text("utf-8")))


@pytest.mark.parametrize("program", FILES)
def test_every_approved_variable_is_described(program: str) -> None:
    approved = set[str]()
    for line in (APPROVED / "environment.txt").read_text().splitlines():
        file, _, name = line.partition(": ")
        if file == FILES[program] and (program != "./ma" or name not in HANDED_ON):
            approved.add(name.removesuffix("_FILE"))
    assert approved <= {variable.name for variable in of_program(program)}


def test_the_guide_has_the_defaults_of_the_code() -> None:
    said = dict[str, str]()
    for names, rest in ROW.findall(GUIDE.read_text("utf-8")):
        for name in NAME.findall(names):
            said[name] = said.get(name, "") + " " + rest.partition(" | ")[0]
    for program in FILES:
        for variable in of_program(program):
            if variable.default:
                words = re.split(r"[`\s]+|, ", said[variable.name])
                assert variable.default in words, (variable.name, variable.default, words)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('reader.text("MA_A")', Variable("MA_A", None)),
        ('reader.text("MA_A", "")', Variable("MA_A", "")),
        ('reader.parsed("MA_A", reader.secret("MA_A"), _key, "")', Variable("MA_A", None, "", True)),
        ('reader.option("MA_A_DAYS", _whole(0, 36_500), "30")', Variable("MA_A_DAYS", "30", "0 to 36,500")),
        ('reader.option("MA_A", _switch, "0")', Variable("MA_A", "0", "0, 1")),
        ('reader.number("KMA_A", "2", 0.1, 60)', Variable("KMA_A", "2", "0.1 to 60")),
        ('reader.number("KMA_A", "5", 1, 2**40)', Variable("KMA_A", "5", "1 to 1,099,511,627,776")),
        ('environ.get("MA_A") or "b"', Variable("MA_A", "b")),
        ('environ.get("MA_A") or str(REPOSITORY / "var")', Variable("MA_A", "./var")),
        ('ports = (("MA_PORT", 8000),)', Variable("MA_PORT", "8000", "1 to 65,535")),
    ],
)
def test_a_variable_is_known_by_how_it_is_read(code: str, expected: Variable) -> None:
    assert variables(ast.parse(code)) == [expected]


@pytest.mark.parametrize(
    ("name", "unit"), [("MA_BIN_DAYS", "days"), ("KMA_SPOOL_BYTES", "bytes"), ("MA_PORT", "")]
)
def test_the_unit_is_the_end_of_the_name(name: str, unit: str) -> None:
    assert Variable(name, "1").unit == unit


def test_a_variable_that_the_guide_leaves_out_fails_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    known = environment.read_guide()
    del known["MA_BIN_DAYS"]
    monkeypatch.setattr(environment, "read_guide", lambda: known)
    with pytest.raises(ValueError, match=r"environment\.md.*MA_BIN_DAYS"):
        environment.pages()


def test_a_row_of_several_variables_has_the_default_of_each() -> None:
    known = environment.read_guide()
    assert [known[name].default for name in ("MA_KEEP_REPLAYS_DAYS", "MA_KEEP_AUDIT_DAYS")] == ["365", "0"]
    assert known["MA_AMQP_URL"].default == known["MA_STOMP_ADDRESS"].default == "loopback and the ports above"


def test_the_page_has_what_the_code_and_what_the_guide_says() -> None:
    (page,) = environment.pages().values()
    assert "| `MA_PORT` | `8000` | 1 to 65,535 |  | the site |" in page
    assert "| `MA_SECRET_KEY`, `MA_SECRET_KEY_FILE` | `secrets/django_key`; required without `./ma` |" in page
    assert page.count("| variable | default | values | unit | meaning |") == len(FILES)
    assert "| variable | default | meaning |" not in page and "## A KMA\n\n| variable" in page


def test_each_audit_code_and_alert_kind_has_its_row() -> None:
    found = codes.pages()
    assert text.ACTIONS
    for code in text.ACTIONS:
        assert f"| `{code}` |" in found["audit-codes"]
    assert "| `dead_letters_old` | Old dead letters | warning |" in found["alert-kinds"]
    assert "| 86,400 | 1 min |" in found["alert-kinds"]


def test_a_field_of_a_setting_has_values_default_and_description() -> None:
    page = fields.pages()["settings"]
    assert (
        "| Grace period, s | `grace_seconds` | number, 0 to 3,600 | 30 | When the setting is stopped" in page
    )
    assert "| `ANY` (one server, with failover), `MANY` (all servers in the pool) | `ANY` |" in page
    assert "| whole number, 1 to 10,000 | 10 |" in page and "`enabled`" not in page


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "format": "date-time"}, "2026-11-26T09:14:00Z"),
        ({"enum": ["", None, "ANY", "MANY"]}, "ANY"),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "boolean", "default": False}, False),
        ({"type": "array", "items": {"type": "integer"}}, [1]),
        ({"allOf": [{"$ref": "#/components/schemas/A"}]}, {"setting": "orders"}),
    ],
)
def test_an_example_is_of_the_right_kind(schema: dict[str, object], expected: object) -> None:
    kinds = {"A": {"type": "object", "properties": {"setting": {"type": "string"}}}}
    assert example(schema, kinds) == expected


def test_what_only_answers_have_is_not_sent() -> None:
    schema = {
        "required": ["key"],
        "properties": {
            "key": {"type": "string"},
            "id": {"type": "integer", "readOnly": True},
            "note": {"type": "string"},
        },
    }
    assert example(schema, {}, sent=True) == {"key": "orders"}
    assert set(example(schema, {})) == {"key", "id", "note"}


def test_a_schema_that_holds_itself_ends() -> None:
    itself = {"A": {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/A"}}}}
    assert json.dumps(example(itself["A"], itself)).count("a") == 5


def test_a_request_is_a_call_that_the_site_knows() -> None:
    call = request("/api/v1/settings/{key}/enable/", "post", {"reason": "it's fixed"})
    assert "it'\\''s fixed" in call and "-X" not in call
    assert resolve(call.rpartition("$MA")[2].rstrip('"')).kwargs == {"key": "orders"}
    assert "-X DELETE" in request("/api/v1/grants/{id}/", "delete", None)
