"""Each verb of `./ma --url`, over a socket: for who may it ends with 0 and prints JSON, for who may not it
ends with 1 and says why. Each is asked once in a process, and judged by tests of its route."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone

from agents.models import Activation, Freeze, LaunchSetting, MaintenanceWindow, PoolGrant
from alerts.models import Notice, NoticeTarget
from broker.amqp.codec import encode
from broker.port import Message
from console.models import ApiToken, SavedFilter
from contract.typed import Typed
from deploy.remote.site import Exit
from dlq.models import LetterQueue, WholeFetch
from dlq.replay.preflight.rules import CODES
from insights.models import PipelineRun
from ma_site.api import every_command
from retention.models import RetentionRun
from tests.architecture.approval import FOLDER
from tests.web import launching_requests, letter_requests
from tests.web.letter_requests import KEY
from tests.web.remote_client import Ran, RemoteClient, command_for, words_for
from tests.web.served import served
from tests.web.test_acknowledgements import House
from tests.web.test_unsafe_routes import launching, letters, now, person, walk  # noqa: F401 - fixtures too
from tests.web.unsafe_routes import Ask

pytestmark = [pytest.mark.process, pytest.mark.django_db]  # no process, but as dear as one
REST, ON = "/api/v1", "orders-export"
ROUTES = [
    tuple(line.split()[:2])
    for line in (FOLDER / "rest.txt").read_text("utf-8").splitlines()
    if "[serverToken]" not in line
]
# Not refused, but empty for who may see nothing; and what the interface looks like.
ANYBODY_LOOKS = {(noun, "list") for noun in ("known-faults", "notes", "takings")} | {("commands", "get")}
# What is one's own, and what belongs to looking.
VIEWER_DOES = {
    ("dead-letters", "cancel"), ("dead-letters", "fetch"), ("protocols-saved", "save"),
    ("saved-filters", "save"),
}  # fmt: skip
REFUSALS = {"permission_denied", "not_found"}


class SocketClient(RemoteClient):
    def __init__(self, who: User, url: str) -> None:
        self.environ = {"MA_URL": url, "MA_TOKEN": ApiToken.issue(who, "test", now=timezone.now())}


@dataclass(frozen=True)
class Verb:
    """How it ended for who may, and before that for who may not."""

    command: Mapping[str, Any]
    may: Ran
    may_not: Ran

    @property
    def name(self) -> tuple[str, str]:
        return self.command["noun"], self.command["verb"]

    @property
    def route(self) -> tuple[str, str]:
        return self.command["method"], self.command["path"]


_known: dict[str, list[Verb]] = {}


def known(name: str, request: pytest.FixtureRequest, ask: Callable[..., Iterator[Verb]]) -> list[Verb]:
    if name not in _known:
        _known[name] = []  # and not once more for each test where it fails
        rows = [request.getfixturevalue(each) for each in ("launching", "letters", "person")]
        with served() as url:
            _known[name] = [*ask(*rows, url)]
    return _known[name]


# -- verbs that change something -----------------------------------------------------------------------------


@pytest.fixture
def changes(request: pytest.FixtureRequest) -> list[Verb]:
    return known("changes", request, change)


def change(
    launching: launching_requests.Rows,  # noqa: F811 - the fixture
    letters: letter_requests.Rows,  # noqa: F811
    person: User,  # noqa: F811
    url: str,
) -> Iterator[Verb]:
    launching.lie_on(letters.house.management)
    remote, viewer = SocketClient(person, url), SocketClient(launching.world.people["viewer"], url)
    commands = every_command()

    def by_remote(_person: User, ask: Ask) -> Callable[[], Verb | None]:
        method, path = ask.route.split()[:2]
        if not path.startswith(REST):
            return lambda: None
        said = {name: now(value) for name, value in ask.said.items()}
        command = command_for(commands, method, path, said)
        words = [*words_for(command, [now(place) for place in ask.of], said), "--json"]
        return partial(asked, command, words, remote, viewer)

    # The forms of the admin come last, and are no verbs.
    rows = takewhile(lambda ask: not ask.route.endswith("/add/"), launching.requests())
    for _route, verb, _left in walk(
        person, chain(rows, letters.requests(), others(letters, launching)), by_remote
    ):
        if verb is not None:
            yield verb


def asked(command: Mapping[str, Any], words: list[str], may: RemoteClient, may_not: RemoteClient) -> Verb:
    """Nothing is left of what the one did who may not."""
    before = transaction.savepoint()
    refused = may_not(*words)
    transaction.savepoint_rollback(before)
    return Verb(command, may(*words), refused)


def others(letters: letter_requests.Rows, launching: launching_requests.Rows) -> Iterator[Ask]:  # noqa: F811
    """Verbs that share their route with another one."""
    replays, waiting, house = f"POST {REST}/replays/", f"POST {REST}/settings/{{key}}/waiting/", letters.house
    moved = {"setting": KEY, "letters": [letters.letter.pk], "acknowledge": [*CODES]}
    yield Ask(replays, said={**moved, "action": "redirect", "target": "mirror"})
    yield Ask(replays, said={**moved, "action": "discard", "reason": "x"})
    yield Ask(replays, said={**moved, "action": "put_back", "letters": [letters.in_bin.pk]})
    yield Ask(f"POST {REST}/preflight/", said={"setting": KEY, "all": True})
    for action in ("enable", "disable", "stop"):
        yield Ask(f"POST {REST}/bulk/", said={"action": action, "settings": [ON]})
    numbers = house.numbers("waiting")
    yield Ask(waiting, [KEY], {"action": "to_dlq", "part": "waiting", "reason": "x", "messages": numbers})
    house.delay("d1")
    yield Ask(waiting, [KEY], {"action": "try_now", "part": "delayed", "reason": "x", "all": True})
    house.hold()
    yield Ask(waiting, [KEY], {"action": "release", "part": "held", "reason": "x", "all": True})
    answers = House(launching.pool, launching.world.servers["srv-1"])
    answers.store(answers.opened(answers.id()))
    said = {"acknowledgement": answers.id(), "action": "ROLLBACK"}
    yield Ask(f"POST {REST}/acknowledgements/", said=said)


# -- verbs that look -----------------------------------------------------------------------------------------


@pytest.fixture
def looks(request: pytest.FixtureRequest) -> list[Verb]:
    return known("looks", request, look)


def look(
    launching: launching_requests.Rows,  # noqa: F811
    letters: letter_requests.Rows,  # noqa: F811
    person: User,  # noqa: F811
    url: str,
) -> Iterator[Verb]:
    launching.lie_on(letters.house.management)
    remote, outsider = SocketClient(person, url), SocketClient(launching.world.people["outsider"], url)
    places = places_of(launching, letters, person)
    for command in every_command():
        if command["method"] == "GET":
            path = command["path"].removeprefix(REST)
            assert (path in places) == ("{" in path), f"{path}: what is there to look at?"
            of = [str(places[path])] if path in places else []
            words = [command["noun"], command["verb"], *of, "--json"]
            yield asked(command, words, remote, outsider)


def places_of(
    launching: launching_requests.Rows,  # noqa: F811
    letters: letter_requests.Rows,  # noqa: F811
    person: User,  # noqa: F811
) -> dict[str, object]:
    """What an address names, which is there."""
    world, setting = launching.world, launching.world.settings[ON]
    assert world.alert and world.job and world.launches
    house = House(launching.pool, world.servers["srv-1"])
    house.store(house.opened(house.id()))
    whole = encode(Message(body=Typed("string", "whole")))
    WholeFetch.objects.filter(letter=letters.fetched).update(state="done", encoded=whole)
    action = letters.action()
    views = {
        name: SavedFilter.objects.create(list=name, owner=person, name="keys", query="exception=Key").pk
        for name in ("protocols", "dead_letters")
    }
    activation, letter = world.activations[ON].pk, letters.letter.pk
    Activation.objects.filter(pk=activation).update(number=2)  # there is one before it
    target = NoticeTarget.objects.create(setting=setting, channel="email", address="oncall@shop.example")
    freeze = Freeze.objects.create(scope="*", by_name="x", reason="x", lifted_at=timezone.now())
    window = MaintenanceWindow.objects.create(crontab="0 0 29 2 *", minutes=1, reason="x")
    grant = PoolGrant.objects.create(pool=launching.pool, group=Group.objects.get(name="viewer"))
    return {
        "/acknowledgements/{acknowledgement}/": house.id(),
        "/activations/{id}/": activation,
        "/activations/{id}/difference/": activation,
        "/alerts/{id}/": world.alert.pk,
        "/dead-letters/{id}/": letter,
        "/dead-letters/{id}/whole/": letter,
        "/dead-letters/{id}/whole/body/": letters.fetched.pk,
        "/destinations/{name}/": "shop.orders",
        "/fingerprints/{fingerprint}/": launching.kind,
        "/foreign-queues/{id}/": LetterQueue.objects.create(queue="OLD", address="OLD", foreign=True).pk,
        "/freezes/{id}/": freeze.pk,
        "/freezes/{id}/held/": freeze.pk,
        "/grants/{id}/": grant.pk,
        "/groups/{name}/": "nightly",
        "/groups/{name}/windows/": "nightly",
        "/maintenance-windows/{id}/": window.pk,
        "/maintenance-windows/{id}/held/": window.pk,
        "/notice-targets/{id}/": target.pk,
        "/notices/{id}/": Notice.objects.create(
            target=target, channel="email", address="oncall@shop.example"
        ).pk,
        "/pipeline-runs/{id}/": PipelineRun.objects.create(state="done").pk,
        "/pools/{name}/": "main",
        "/protocols/saved/{id}/": views["protocols"],
        "/protocols/{id}/": world.protocols[0].pk,
        "/queues/{key}/": KEY,
        "/replays/{id}/": world.job.pk,
        "/replays/{id}/letters/": world.job.pk,
        "/retention/runs/{id}/": RetentionRun.objects.create(state="done").pk,
        "/saved-filters/{id}/": views["dead_letters"],
        "/servers/{name}/": "srv-1",
        "/settings/{key}/": ON,
        "/settings/{key}/blocking/": "row",
        "/settings/{key}/breaker/": ON,
        "/settings/{key}/waiting/": KEY,
        "/settings/{key}/what-if/": ON,
        "/settings/{key}/windows/": "night-sum",
        "/trips/{id}/": world.launches.trip.pk,
        "/waiting-actions/{id}/": action,
        "/waiting-actions/{id}/messages/": action,
    }


# -- judged --------------------------------------------------------------------------------------------------


def check_done(verb: Verb) -> None:
    assert (verb.may.code, verb.may.err) == (Exit.DONE, ""), verb
    kind = verb.command["answer"]
    if kind == "file":
        assert verb.may.out
    elif kind == "none":
        assert verb.may.json is None
    else:
        is_list = kind == "list" and not isinstance(verb.may.json, list)
        assert type(verb.may.json) in (list, dict) and (not is_list or "results" in verb.may.json), verb


def check_refused(verb: Verb, anybody: set[tuple[str, str]]) -> None:
    if verb.name in anybody:
        assert verb.may_not.code == Exit.DONE, verb
        assert verb.command["answer"] != "list" or verb.may_not.json["results"] == [], verb
        return
    assert verb.may_not.code == Exit.REFUSED, verb
    told = verb.may_not.json
    assert told["error"] in REFUSALS, verb
    assert verb.may_not.err.startswith(f"ma: {told['detail']}"), verb
    assert verb.may_not.err.count("\n") == 2, "what to do stands below"


@pytest.mark.parametrize("route", [each for each in ROUTES if each[0] == "GET"], ids=" ".join)
def test_a_verb_that_looks_answers_who_may_and_refuses_who_may_not(
    route: tuple[str, str], looks: list[Verb]
) -> None:
    (verb,) = (each for each in looks if each.route == route)
    check_done(verb)
    check_refused(verb, ANYBODY_LOOKS)


@pytest.mark.parametrize("route", [each for each in ROUTES if each[0] != "GET"], ids=" ".join)
def test_a_verb_that_changes_something_does_it_for_who_may_and_refuses_who_may_not(
    route: tuple[str, str], changes: list[Verb]
) -> None:
    verbs = [each for each in changes if each.route == route]
    assert verbs, "a new route has its request in tests/web/*_requests.py"
    for verb in verbs:
        check_done(verb)
        check_refused(verb, VIEWER_DOES)


def test_no_verb_of_the_listing_is_left_out(looks: list[Verb], changes: list[Verb]) -> None:
    """Some have a route in common: a new one of these belongs into `others`."""
    listed = {(each["noun"], each["verb"]) for each in every_command()}
    assert {each.name for each in (*looks, *changes)} == listed
    assert len(listed) > 150


# -- verbs of the client itself ------------------------------------------------------------------------------


def test_a_plan_with_changes_ends_with_2_and_who_may_not_apply_it_with_1(
    setting: LaunchSetting, operator: User, viewer: User, outsider: User, tmp_path: Path
) -> None:
    with served() as url:
        remote, looking, shut = (SocketClient(who, url) for who in (operator, viewer, outsider))
        exported = remote("export")
        assert (exported.code, exported.err) == (Exit.DONE, "")
        file = tmp_path / "settings.yaml"
        file.write_text(exported.out.replace("breaker_m: 10", "breaker_m: 9"), "utf-8")
        planning: tuple[tuple[str, ...], ...] = (("plan", str(file)), ("apply", "--dry-run", str(file)))
        for words in planning:
            planned = remote(*words, "--json")
            assert planned.code == Exit.CHANGES and int(Exit.CHANGES) == 2
            assert [each["path"] for each in planned.json["changes"]] == ["settings/orders/breaker_m"]
            assert "1 change to make; nothing was stored." in remote(*words).out

        refused = looking("apply", str(file), "--json")
        assert (refused.code, refused.json["error"]) == (Exit.REFUSED, "permission_denied")
        assert refused.err.splitlines()[-2].startswith(f"ma: {refused.json['detail']}")
        for words in (("export",), ("plan", str(file)), ("apply", str(file))):
            assert shut(*words).code == Exit.REFUSED and shut(*words).err.startswith("ma: "), words
        setting.refresh_from_db()
        assert setting.breaker_m == 10

        assert remote("apply", str(file), "--json").json["changes"] == planned.json["changes"]
        setting.refresh_from_db()
        assert setting.breaker_m == 9
        assert remote("plan", str(file)).code == Exit.DONE
