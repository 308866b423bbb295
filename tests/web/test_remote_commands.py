"""What the site declares as remote commands: every operation, every route of a person; and `./ma --url` with
it, as an operator uses it."""

import inspect
import re
from argparse import ArgumentError
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import LaunchSetting, Pool
from console.audit.models import AuditEntry
from console.operations.operation import Operation
from console.rest import commands as rest_commands
from deploy.remote.cli import SPECIAL
from deploy.remote.commands import parser_of
from deploy.remote.site import Exit
from failures.models import FailureProtocol
from ma_site.api import every_command
from tests.architecture.approval import FOLDER
from tests.web.factories import World
from tests.web.remote_client import Ran, RemoteClient, looks
from tests.web.rows import api_client, make_alive, make_setting
from tests.web.test_every_route import read_to_the_end, routes

pytestmark = pytest.mark.django_db


def below(one: type[Operation[Any]]) -> set[type[Operation[Any]]]:
    return {one}.union(*map(below, one.__subclasses__()))


def operations() -> set[str]:
    """Codes of all that are declared."""
    declared = (one for one in below(Operation) if hasattr(one, "code") and not inspect.isabstract(one))
    return {one.code for one in declared if not one.__module__.startswith("tests.")}


# -- what is declared ----------------------------------------------------------------------------------------


def test_every_operation_is_a_remote_command() -> None:
    """One that is new needs its route alone: tests/web/test_unsafe_routes.py carries it out."""
    found = {each["operation"] for each in every_command()}
    assert len(operations()) > 60
    assert operations() - found == set()


def test_every_route_of_a_person_is_one_and_none_of_a_server() -> None:
    approved = (FOLDER / "rest.txt").read_text("utf-8").splitlines()
    wanted = {(line.split()[0], line.split()[1]) for line in approved if "[serverToken]" not in line}
    assert {(each["method"], each["path"]) for each in every_command()} == wanted


def test_no_two_commands_have_one_name_and_each_says_what_it_is() -> None:
    names = [(each["noun"], each["verb"]) for each in every_command()]
    assert len(names) == len(set(names))
    assert not {noun for noun, _verb in names} & {*SPECIAL, "completion", "__complete"}
    assert [each for each in every_command() if not re.fullmatch(r"[a-z][a-z0-9-]*", each["verb"])] == []


def test_the_options_of_each_fit_beside_those_of_the_client() -> None:
    """Two with one name are an ArgumentError."""
    nouns = {each["noun"] for each in every_command()}
    for noun in nouns:
        try:
            parser_of(noun, [each for each in every_command() if each["noun"] == noun])
        except ArgumentError as error:
            pytest.fail(f"{noun}: {error}")


def test_the_list_is_bounded_by_a_noun_and_needs_no_token(client: Any) -> None:
    found = client.get("/api/v1/commands/?noun=settings").json()
    assert found["version"] == rest_commands.VERSION
    assert {each["noun"] for each in found["commands"]} == {"settings"}
    enable = next(each for each in found["commands"] if each["verb"] == "enable")
    assert (enable["operation"], enable["method"], enable["answer"]) == ("setting.enable", "POST", "object")
    assert [(each["name"], each["place"], each["type"]) for each in enable["inputs"]] == [
        ("key", "path", "string"),
        ("try_one_first", "body", "boolean"),
    ]
    assert len(client.get("/api/v1/commands/").json()["commands"]) == len(every_command())
    assert client.get("/api/v1/commands/?noun=none").json()["commands"] == []
    assert client.get("/api/v1/commands/?nown=settings").status_code == 400


# -- every GET, as the pages' people may --------------------------------------------------------------------


@pytest.mark.process  # no process, but as dear as one
def test_each_command_that_only_looks_answers_as_its_route_does(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    chief, commands = world.people["chief"], every_command()
    remote, client, seen = RemoteClient(chief, monkeypatch), api_client(chief), set()
    for address in routes(world):
        for command, places in looks(commands, address):
            answer = client.get(address)
            read_to_the_end(answer)
            seen.add(command["path"])
            is_file = command["answer"] == "file"
            ran = remote(command["noun"], command["verb"], *places, *([] if is_file else ["--json"]))
            assert (ran.code == Exit.DONE) == (answer.status_code == 200), address
            if not is_file and answer.status_code == 200:
                assert type(ran.json) is type(answer.json()), address
    assert {each["path"] for each in commands if each["method"] == "GET"} == seen


# -- as an operator uses it ----------------------------------------------------------------------------------


@pytest.fixture
def remote(operator: User, setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch) -> RemoteClient:
    make_alive(*setting.pool.servers.all(), now=timezone.now())
    return RemoteClient(operator, monkeypatch)


def test_a_setting_is_listed_enabled_and_disabled(remote: RemoteClient, setting: LaunchSetting) -> None:
    head, row = remote("settings", "list").out.splitlines()
    assert head.split()[0] == "key" and row.split()[0] == "orders"
    assert remote("settings", "list", "--json").json["results"][0]["key"] == "orders"
    assert remote("settings", "list", "--columns=pool,key").out.split() == ["pool", "key", "demo", "orders"]
    began = remote("settings", "enable", "orders", "--try-one-first", "--json")
    assert (began.code, began.json["trial"]) == (0, True)
    done = remote("settings", "disable", "orders", "--reason", "wrong day")
    assert done.code == 0 and re.search(r"^disabled_reason +wrong day", done.out, re.MULTILINE)
    setting.refresh_from_db()
    assert not setting.enabled
    assert [each.action for each in AuditEntry.objects.order_by("pk")][-1] == "setting.disable"


def test_a_refusal_says_what_why_and_what_to_do(remote: RemoteClient, viewer: User, monkeypatch: Any) -> None:
    ran = remote("settings", "run", "orders")
    assert ran.code == Exit.REFUSED and ran.out == ""
    assert ran.err.startswith("ma: ") and ran.err.count("\n") == 2 and "    " in ran.err
    told = remote("settings", "run", "orders", "--json")
    assert (told.json["error"], told.json["detail"] in told.err) == ("disabled", True)
    denied = RemoteClient(viewer, monkeypatch)("settings", "enable", "orders")
    assert denied.code == Exit.REFUSED and "Can enable launch settings" in denied.err
    assert "Ask an administrator" in denied.err


def test_a_token_that_is_none_is_refused_and_never_shown(remote: RemoteClient) -> None:
    remote.environ["MA_TOKEN"] = "ma_wrong"
    ran = remote("settings", "list")
    assert ran.code == Exit.REFUSED and "create_api_token" in ran.err
    remote.environ["MA_TOKEN"] = "ma_two\nlines"
    odd = remote("settings", "list")
    assert (odd.code, "ma_two" in odd.err) == (Exit.USAGE, False)


def test_what_nobody_declared_is_a_usage_error_that_names_what_there_is(remote: RemoteClient) -> None:
    for words, named in (
        (("setings", "list"), "settings"),
        (("settings", "enabel", "orders"), "enable"),
        (("settings", "enable"), "KEY"),
        (("settings", "enable", ""), "KEY is empty"),
        (("settings", "disable", "orders", "--reson", "x"), "--reson"),
        (("settings", "list", "--kind", "x"), "standalone"),
        ((), "settings"),
    ):
        ran = remote(*words) if words else remote("--timeout=5")
        assert ran.code == Exit.USAGE and named in ran.err + ran.out, words
    assert remote("settings", "--help").code == 0
    assert "wrong day" not in remote("settings", "disable", "--help").out


def test_all_pages_are_followed_on_the_site_alone(remote: RemoteClient, pool: Pool) -> None:
    for number in range(4):
        make_setting(pool, f"more-{number}")
    first = remote("settings", "list", "--page-size=2")
    assert len(first.out.splitlines()) == 3 and "--all-pages" in first.err
    every = remote("settings", "list", "--page-size=2", "--all-pages", "--json").json
    assert [row["key"] for row in every] == ["more-0", "more-1", "more-2", "more-3", "orders"]


def test_a_body_comes_from_a_file_with_options_over_it(remote: RemoteClient, tmp_path: Path) -> None:
    file = tmp_path / "setting.json"
    file.write_text('{"breaker_m": 30, "description": "as in the file"}')
    changed = remote("settings", "change", "orders", f"--input={file}", "--breaker-m=12", "--json")
    assert (changed.json["breaker_m"], changed.json["description"]) == (12, "as in the file")
    remote("settings", "change", "orders", "--parameters", '{"rate": 1.5}')
    assert LaunchSetting.objects.get(key="orders").parameters == {"rate": 1.5}
    for text in ("[]", "{", "\xff"):
        file.write_bytes(text.encode("latin-1"))
        assert remote("settings", "change", "orders", f"--input={file}").code == Exit.USAGE
    assert remote("settings", "change", "orders", f"--input={tmp_path / 'none'}").code == Exit.USAGE
    assert remote("settings", "change", "orders", "--parameters", "{x").code == Exit.USAGE


def test_a_file_is_written_whole_or_not_at_all(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    remote, file = RemoteClient(world.people["chief"], monkeypatch), tmp_path / "protocols.csv"
    assert remote("protocols", "export", f"--out={file}").code == 0
    lines = file.read_text("utf-8-sig").splitlines()
    assert lines[0].startswith("id,") and len(lines) == FailureProtocol.objects.count() + 1
    assert remote("protocols", "export", "--setting=mail-send").out.count("mail-send") > 0
    assert remote("protocols", "export", "--setting=x", "--span=y", f"--out={tmp_path / 'no'}").code != 0
    assert [each.name for each in tmp_path.iterdir()] == ["protocols.csv"]


def test_what_others_wrote_is_no_command_to_the_terminal(
    remote: RemoteClient, setting: LaunchSetting
) -> None:
    LaunchSetting.objects.filter(pk=setting.pk).update(description="\x1b[31mred\nline")
    for words in (("settings", "get", "orders"), ("settings", "list", "--columns=key,description")):
        ran = remote(*words)
        assert "\\x1b[31mred\\nline" in ran.out and "\x1b" not in ran.out


# -- completion ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "offered", "not_offered"),
    [
        (("",), {"settings", "apply", "up", "completion"}, {"--url"}),
        (("set",), {"settings"}, {"servers"}),
        (("-",), {"--url", "--ca"}, {"settings"}),
        (("--url", "http://127.0.0.1:1", "s"), {"settings", "servers"}, {"status"}),
        (("settings", ""), {"enable", "list", "what-if"}, {"cordon"}),
        (("settings", "enable", ""), {"orders"}, {"enable"}),
        (("settings", "enable", "x"), set(), {"orders"}),
        (("settings", "disable", "orders", "--"), {"--reason", "--until", "--json"}, {"--key"}),
        (("settings", "list", "--timing", ""), {"ASAP", "DELAYED"}, {"orders"}),
        (("nothing", ""), set(), {"list"}),
        ((), {"settings"}, set()),
    ],
)
def test_completion_offers_what_the_site_declares(
    remote: RemoteClient, words: tuple[str, ...], offered: set[str], not_offered: set[str]
) -> None:
    ran = remote("__complete", *words)
    found = set(ran.out.splitlines())
    assert (ran.code, ran.err) == (0, "")
    assert offered <= found and not found & not_offered


def test_completion_says_nothing_where_nothing_answers(remote: RemoteClient) -> None:
    remote.environ["MA_URL"] = ""
    assert "status" in remote("__complete", "").out and "settings" not in remote("__complete", "").out
    remote.environ["MA_URL"] = "ftp://x"
    assert remote("__complete", "settings", "") == Ran(0, "", "")
