"""manage.py erase: afterwards the value is nowhere, everything else is as it was, and the audit knows who,
not what."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from agents.models import LaunchSetting, Run
from broker.port import BrokerUnavailable
from console.audit.models import AuditEntry
from console.database.json_values import WantedValue
from console.models import SavedFilter
from contract.messages import Record
from contract.typed import Typed
from dlq.index.broker import LetterQueues
from dlq.models import (
    DeadLetter,
    ItemState,
    JobState,
    KnownFault,
    LetterEdit,
    LetterReport,
    LetterState,
    Note,
    ReplayItem,
    ReplayJob,
    Taking,
    WholeFetch,
)  # fmt: skip
from dlq.search import rebuild, words
from dlq.search.word_index import catch_up
from dlq.search.words import TABLE
from failures.intake.batch import accept_batch
from failures.models import FailureProtocol, RecoveredMessage, RefusedRecord
from failures.protocols.messages import unresolved
from failures.protocols.properties import INDEX
from retention.erasure import archive
from retention.erasure import protocols as erasing
from tests.web import letters, reports
from tests.web.reports import AT, Spool

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
NAME, SECRET, KEY = "customer", "Änne-Müller-4711", "ID:Änne-Müller-4711/1"
OTHER = "ID:other"


class Broker:
    """Dead-letter queues: ids by queue and the queue that they were in before."""

    def __init__(self) -> None:
        self.lying: dict[tuple[str, str], set[int]] = {}
        self.held: set[int] = set()
        self.fed = 0
        self.away = False
        self.before: Callable[[str], None] = lambda operation: None

    def attribute(self, resource: str, name: str) -> str:
        assert (resource, name) == ("broker", "NodeID")
        return letters.NODE

    def attributes(self, resource: str, *names: str) -> list[int]:
        assert (resource, names) == ("queue.DLQ.feed", ("MessageCount",))
        return [self.fed]

    def call(self, resource: str, operation: str, *arguments: Any) -> int:
        self.before(operation)
        if self.away:
            raise BrokerUnavailable("no connection")
        selector = arguments[-1]
        origin, named = selector.split("'")[1], selector.rpartition("(")[2].rstrip(")")
        ids = {int(term.rpartition("= ")[2]) for term in named.split(" OR ")}
        there = self.lying.setdefault((resource.removeprefix("queue."), origin), set())
        if operation == "countMessages":
            return len(there & ids)
        assert operation == "removeMessages"
        gone = there & ids - self.held
        there -= gone
        return len(gone)

    def put(self, row: DeadLetter) -> None:
        self.lying.setdefault((row.queue, row.orig_queue), set()).add(row.orig_message_id)

    @property
    def left(self) -> set[int]:
        return {number for numbers in self.lying.values() for number in numbers}


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    queues = LetterQueues(broker, None, "MA.DLA")  # type: ignore[arg-type]
    monkeypatch.setattr("retention.management.commands.erase.letter_queues", lambda: queues)
    return broker


@pytest.fixture
def setting() -> LaunchSetting:
    return reports.setting(masked_properties=["iban"])


@pytest.fixture
def person() -> User:
    return reports.person("officer", "retention.erase_personal")


@pytest.fixture
def run(setting: LaunchSetting) -> Run:
    return reports.run(setting, reports.server())


def message(key: str, value: str, attempt: int = 1) -> Any:
    return reports.message(
        key, attempt, properties={NAME: value, "region": "north"}, body_digest=f"sha256:{value}"
    )


@pytest.fixture
def house(setting: LaunchSetting, run: Run, person: User, broker: Broker) -> None:
    """Everything that is kept of two messages; what is numbered 1 and 2 is of the one that is to be
    erased."""
    of = reports.run_of(run)
    spool = Spool()
    contents: list[Any] = []
    for key, value in ((KEY, SECRET), (OTHER, "somebody else")):
        for attempt in (1, 2):
            contents.append(
                reports.protocol(
                    of, message(key, value, attempt), exception_text=f"no such customer {value}",
                    traceback=f"Traceback\n  …\nKeyError: {value}", traceparent=f"00-{value}",
                    occurred_at=AT + timedelta(minutes=attempt),
                )
            )  # fmt: skip
        contents.append(reports.recovered(of, message(key, value, 3), AT + timedelta(minutes=9)))
    batch = spool.batch(*contents)
    broken = Record(
        batch.records[-1].number + 1, uuid4(), "protocol",
        {"run": {"setting": "orders", "server": "srv-1"}, "message": {"key": KEY,
        "properties": {NAME: SECRET}}},
    )  # fmt: skip
    accept_batch(run.server, replace(batch, records=(*batch.records, broken)), AT)
    properties = {NAME: Typed("string", SECRET), "iban": Typed("string", SECRET)}
    body = Typed("string", json.dumps({"name": SECRET}, ensure_ascii=False))
    dead = letters.dead(
        "orders", 1, KEY, body=body, properties=properties, correlation_id=Typed("string", SECRET)
    )
    binned = letters.dead("orders", 2, KEY, body=body, properties=properties)
    DeadLetter.objects.filter(pk=binned.pk).update(queue="DLQ.bin", orig_queue="DLQ.orders")
    other = letters.dead(
        "orders", 3, OTHER, body=Typed("string", "other"), properties={NAME: Typed("string", "x")}
    )
    for row in (dead, DeadLetter.objects.get(pk=binned.pk), other):
        broker.put(row)
    for key, text in ((KEY, f"called {SECRET}"), (OTHER, "called nobody")):
        about = {
            "setting_key": "orders",
            "message_key": key,
            "by": person,
            "by_name": "officer",
            "text": text,
        }
        Note.objects.create(**about)
        KnownFault.objects.create(**about, ticket=text)
        Taking.objects.create(**about)
        LetterReport.objects.create(
            id=uuid4(), setting_key="orders", message_key=key, result="handled", server_name="srv-1",
            activation_uuid=run.activation_id, attempt=1, occurred_at=AT,
        )  # fmt: skip
    job = letters.given_back(setting, letters.dead("orders", 4, KEY, body=body, properties=properties))
    job.query = f"prop={NAME}%3D%C3%84nne-M%C3%BCller-4711"
    job.save()
    LetterEdit.objects.create(
        item=job.items.get(), encoded=SECRET.encode(), diff=[{"what": "body", "before": SECRET}]
    )
    WholeFetch.objects.create(letter=dead, state="done", encoded=SECRET.encode())
    for name, query in (
        ("his", "text=%C3%84nne-M%C3%BCller-4711"),
        ("theirs", "text=other"),
        ("key", "message_key=ID%3A%C3%84nne-M%C3%BCller-4711%2F1"),
    ):
        for word in ("dead_letters", "protocols"):
            SavedFilter.objects.create(list=word, owner=person, name=name, query=query)


def everything() -> str:
    """All that the database holds, as text; bytes as they are."""
    found: list[str] = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if (connection.vendor, table) == ("sqlite", TABLE):
                continue  # a view of its other tables, which are read
            cursor.execute(f'SELECT * FROM "{table}"')
            found += [_text(each) for row in cursor.fetchall() for each in row]
    return "\n".join(found)


def _text(value: Any) -> str:
    return bytes(value).decode("utf-8", "replace") if isinstance(value, (bytes, memoryview)) else str(value)


def forms(secret: str) -> list[str]:
    """As it is, in JSON that escapes, in an address."""
    return [secret, json.dumps(secret)[1:-1], quote(secret), quote(secret, safe="")]


def erase(*arguments: str, **options: Any) -> tuple[str, str, int]:
    out, err = StringIO(), StringIO()
    try:
        call_command(
            "erase", *arguments, "--as", "officer", "--reason", "asked by letter of 7 May", stdout=out,
            stderr=err,
            **options,
        )  # fmt: skip
    except SystemExit as ended:
        return out.getvalue(), err.getvalue(), int(str(ended.code))
    return out.getvalue(), err.getvalue(), 0


BY_KEY, BY_PROPERTY = ("--message-key", KEY), ("--property", f"{NAME}={SECRET}")


@pytest.mark.parametrize("what", [BY_KEY, BY_PROPERTY])
def test_afterwards_it_is_nowhere(house: None, broker: Broker, what: tuple[str, str]) -> None:
    assert SECRET in everything() and INDEX.candidates([WantedValue(SECRET)], 9)
    out, err, code = erase(*what)

    assert (err, code) == ("", 0)
    assert INDEX.candidates([WantedValue(SECRET)], 9) == []
    held = everything()
    secrets = [KEY] if what is BY_KEY else [KEY, SECRET]
    for secret in secrets:
        for form in forms(secret):
            assert form not in held
    if what is BY_KEY:
        assert SECRET not in held.replace("text=%C3%84nne", ""), "it goes with everything of its message"
    assert broker.left == {3}
    assert "dead letters: 3 erased" in out and "protocols: 2 erased" in out


@pytest.mark.parametrize("what", [BY_KEY, BY_PROPERTY])
def test_what_is_of_others_stays(house: None, run: Run, what: tuple[str, str]) -> None:
    def of_others() -> list[Any]:
        protocols = FailureProtocol.objects.filter(message_key=OTHER).order_by("number")
        letter = DeadLetter.objects.get(message_key=OTHER)
        notes = [
            each.text
            for model in (Note, KnownFault, Taking)
            for each in model.objects.filter(message_key=OTHER)
        ]
        return [
            list(protocols.values()), letter.state, letter.body_text, notes,
            SavedFilter.objects.filter(name="theirs").count(),
            words.INDEX.numbers(words.wanted_words("other"), above=-1, below=2**63 - 1, most=10),
        ]  # fmt: skip

    before, failing = of_others(), unresolved(run.activation)
    counts = [
        model.objects.count() for model in (FailureProtocol, RecoveredMessage, DeadLetter, RefusedRecord)
    ]
    erase(*what)

    assert of_others() == before
    assert unresolved(run.activation) == failing, "what failed and recovered is one message still"
    assert [
        model.objects.count() for model in (FailureProtocol, RecoveredMessage, DeadLetter, RefusedRecord)
    ] == counts


def test_the_row_that_stays_says_what_failed_and_where(house: None) -> None:
    erase(*BY_KEY)
    row = FailureProtocol.objects.filter(message_key__startswith="erased:").order_by("attempt").first()

    assert row is not None
    assert (row.exception_type, row.place, row.attempt, row.setting_key) == (
        "builtins.KeyError", "orders.py:handle", 1, "orders"
    )  # fmt: skip
    assert (row.exception_text, row.traceback, row.properties, row.body_digest) == ("", "", {}, "")
    client = Client()
    client.force_login(reports.person("looker", "failures.view_failureprotocol", "dlq.view_deadletter"))
    assert "Erased." in client.get(f"/protocols/{row.pk}/").content.decode()
    assert ">erased</span>" in client.get("/protocols/").content.decode()
    letter = DeadLetter.objects.filter(message_key__startswith="erased:").first()
    assert letter is not None and client.get(f"/letters/{letter.pk}/").status_code == 200
    case = client.get("/cases/", {"key": row.message_key, "setting": "orders"})
    assert case.status_code == 200 and "erased" in case.content.decode()


@pytest.mark.parametrize("what", [BY_KEY, BY_PROPERTY])
def test_the_second_time_there_is_nothing(house: None, what: tuple[str, str]) -> None:
    erase(*what)
    out, _err, code = erase(*what)

    assert code == 0 and "No data found." in out


@pytest.mark.parametrize("what", [BY_KEY, BY_PROPERTY])
def test_a_dry_run_counts_and_changes_nothing(house: None, broker: Broker, what: tuple[str, str]) -> None:
    before = everything()
    broker.away = True
    dry, _err, _code = erase(*what, "--dry-run")
    assert everything() == before
    broker.away = False
    done, _err, _code = erase(*what)

    said = {line.rpartition(" would")[0] for line in dry.splitlines()}
    assert {"protocols: 2", "dead letters: 3", "recovered: 1", "notes: 1"} <= said
    assert said <= {line.removesuffix(" erased") for line in done.splitlines()}


def test_the_audit_knows_who_and_why_and_how_much_but_not_what(house: None) -> None:
    out, _err, _code = erase(*BY_PROPERTY)
    begun, done = AuditEntry.objects.order_by("pk")

    assert (begun.action, done.action, done.by_name) == ("erase_begun", "erase", "officer")
    assert begun.operation == done.operation and str(done.operation) in out
    assert done.reason == "asked by letter of 7 May" and done.counts["protocols"] == 2
    assert done.detail["digest"] == erasing.digest_of(SECRET) and SECRET not in str(done.detail)


def test_only_of_the_setting_that_is_named(house: None, run: Run) -> None:
    before = everything()
    out, _err, _code = erase(*BY_PROPERTY, "--setting", "another")

    assert "protocols" not in out and "dead letters" not in out
    assert everything().count(KEY) == before.count(KEY)


def test_a_letter_that_a_replay_has_is_left_and_told(
    house: None, broker: Broker, setting: LaunchSetting
) -> None:
    dead = DeadLetter.objects.get(orig_message_id=1)
    job = ReplayJob.objects.create(
        setting=setting, setting_key="orders", scope="selection", source_queue="DLQ.orders"
    )
    item = ReplayItem.objects.create(job=job, letter=dead)
    _out, err, code = erase(*BY_KEY)

    assert code == 1 and "DLQ.orders" in err and 1 in broker.left
    assert DeadLetter.objects.get(pk=dead.pk).state == LetterState.DEAD
    assert AuditEntry.objects.get(action="erase").result == "failed"
    ReplayItem.objects.filter(pk=item.pk).update(state=ItemState.CANCELLED)
    ReplayJob.objects.filter(pk=job.pk).update(state=JobState.CANCELLED, finished_at=timezone.now())
    assert erase(*BY_KEY)[2] == 0 and broker.left == {3} and KEY not in everything()


def test_a_letter_in_somebodys_hands_is_left_and_told(house: None, broker: Broker) -> None:
    broker.held = {1}
    _out, err, code = erase(*BY_KEY)
    assert code == 1 and "being delivered: 1" in err
    assert DeadLetter.objects.filter(message_key=KEY).count() >= 1, "found again by its key"
    broker.held = set()

    assert erase(*BY_KEY)[2] == 0 and broker.left == {3} and KEY not in everything()


def test_letters_that_the_index_does_not_have_yet_are_told(house: None, broker: Broker) -> None:
    broker.fed = 2
    _out, err, code = erase(*BY_KEY)

    assert code == 1 and "some messages were dead-lettered just now and are not in the index yet" in err


@pytest.mark.parametrize("what", [BY_KEY, BY_PROPERTY])
@pytest.mark.parametrize("operation", ["removeMessages", "countMessages"])
def test_without_the_broker_the_next_run_goes_on(
    house: None, broker: Broker, operation: str, what: tuple[str, str]
) -> None:
    def lost(asked: str) -> None:
        broker.away = asked == operation

    broker.before = lost
    with pytest.raises(CommandError, match="Run the command again"):
        erase(*what)
    broker.before, broker.away = (lambda asked: None), False

    assert erase(*what)[2] == 0 and broker.left == {3} and KEY not in everything()


def test_masks_that_changed_since_cost_the_index_its_words_not_its_truth(
    house: None, setting: LaunchSetting
) -> None:
    LaunchSetting.objects.filter(pk=setting.pk).update(masked_properties=["region"])
    erase(*BY_KEY)
    while rebuild.step(timezone.now()) or catch_up():
        pass
    found = words.INDEX.numbers(words.wanted_words("other"), above=-1, below=2**63 - 1, most=10)
    assert found == [DeadLetter.objects.get(message_key=OTHER).pk]
    assert words.INDEX.numbers(words.wanted_words("müller"), above=-1, below=2**63 - 1, most=10) == []


def test_an_archive_takes_part(house: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool]] = []

    def erase_in_archive(wanted: erasing.ErasureTarget, dry: bool) -> dict[str, int]:
        asked.append((wanted.secret, dry))
        return {"archived": 5}

    monkeypatch.setattr(archive, "erase_in_archive", erase_in_archive)
    out, _err, _code = erase(*BY_KEY)

    assert asked == [(KEY, False)] and "archived: 5 erased" in out


def test_who_may_not_and_what_makes_no_sense_is_refused(house: None, person: User) -> None:
    before = everything()
    with pytest.raises(CommandError, match="NAME=VALUE"):
        erase("--property", "customer")
    with pytest.raises(CommandError, match="the audit log keeps it"):
        call_command("erase", *BY_KEY, "--as", "officer", "--reason", f"about {KEY}")
    for nothing in ("", " \t\n\u00a0"):
        for dry in ([], ["--dry-run"]):
            with pytest.raises(CommandError, match="--reason is empty"):
                call_command("erase", *BY_KEY, "--as", "officer", "--reason", nothing, *dry)
    person.user_permissions.clear()
    assert not AuditEntry.objects.exists(), "wrongly asked is no attempt"
    with pytest.raises(CommandError, match="may not erase"):
        erase(*BY_KEY)
    tried = AuditEntry.objects.get()
    assert (tried.action, tried.result, tried.by_name) == ("erase", "refused", "officer")
    assert tried.target == f"erased:{erasing.digest_of(KEY)}"
    with pytest.raises(CommandError, match="no active user"):
        call_command("erase", *BY_KEY, "--as", "nobody", "--reason", "x")
    assert everything().count(SECRET) == before.count(SECRET)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({"message": {"key": "k1"}}, True),
        ({"message": {"key": "k11"}}, False),
        ({"message": {"key": "k1"}, "run": {"setting": "other"}}, True),
        ({"message": []}, False),
        ({}, False),
    ],
)
def test_a_record_is_found_by_its_own_key(content: dict[str, Any], found: bool) -> None:
    assert erasing.in_record(json.dumps(content), erasing.ErasureTarget(message_key="k1")) is found


def test_a_record_that_is_cut_off_is_rather_erased_than_kept() -> None:
    cut = json.dumps({"message": {"key": 'a"b', "properties": {"n": "v"}}})[:-3]

    assert erasing.in_record(cut, erasing.ErasureTarget(message_key='a"b'))
    assert erasing.in_record(cut, erasing.ErasureTarget(name="n", value="v"))
    assert not erasing.in_record(cut, erasing.ErasureTarget(name="m", value="v"))


def test_the_other_key_tells_nothing_and_stays_the_same() -> None:
    assert erasing.substitute("a") == erasing.substitute("a") != erasing.substitute("b")
    assert len(erasing.substitute("x" * 255)) <= 255 and UUID(int=0).hex not in erasing.substitute("a")


def test_what_stands_for_a_key_never_changes(settings: Any) -> None:
    """Keys that were erased before are found by it, in the database and in the archive."""
    settings.SECRET_KEY = "a fixed secret key"
    assert erasing.digest_of("anna@example.org") == "ba2914d537f0d90b41f06012"
