"""Copies of edited letters on the real broker: typed, to one queue only, once, whatever is killed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from agents.models import LaunchSetting
from broker.amqp.codec import decode
from broker.amqp.publisher import AmqpPublisher
from broker.port import BodyKind, Message, Settle
from contract.typed import Typed
from dlq.edit import worker
from dlq.edit.operations import edit_letter
from dlq.edit.rules.bulk_rule import rule_of
from dlq.edit.rules.changes import Changes
from dlq.models import DeadLetter, EditState, LetterEdit, ReplayJob, ReplaySlice
from dlq.replay.preflight.rules import CODES
from dlq.replay.requests import Options
from failures.intake.batch import accept_batch
from kma.delivery.message_identity import identify
from tests.dlq.jobs import begun
from tests.dlq.stage import Stage
from tests.services import ArtemisService, throw_away_folder
from tests.web import reports

pytestmark = pytest.mark.django_db

ORDER = Message(
    body=Typed("string", '{"sum": 1.10}'),
    properties={
        "region": Typed("string", "Север"), "short": Typed("short", -3), "ulong": Typed("ulong", 2**64 - 1),
        "when": Typed("timestamp", 1_700_000_000_000), "raw": Typed("binary", b"\0\xff"),
        "flag": Typed("boolean", True),
        "f": Typed("float", 0.5), "nothing": Typed("null", None), "byte": Typed("ubyte", 200),
    },
    annotations={"x-opt-jms-msg-type": Typed("byte", 5)},
    correlation_id=Typed("ulong", 9), reply_to="answers", priority=7, content_type="application/json",
    subject="s",
)  # fmt: skip
SUM = rule_of([{"op": "set_json", "pointer": "/sum", "json": "2.50"}])


@pytest.fixture(autouse=True)
def no_celery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.jobs.engine.send", lambda *_, **__: None)


class Scene:
    """A setting with dead letters, whose address another subscription has too."""

    def __init__(self, stage: Stage, *messages: Message) -> None:
        self.stage = stage
        self.key = stage.key("e")
        self.other = f"{self.key}-other"
        stage.add(self.other, f"t.{self.key}")
        self.setting: LaunchSetting = reports.setting(self.key)
        self.person = reports.person(f"operator-{self.key}", "dlq.view_deadletter", "dlq.edit_letters")
        stage.publish(f"t.{self.key}", *messages)
        stage.management.call(f"queue.{self.other}", "removeAllMessages")
        self.letters = self.die(len(messages))

    def die(self, count: int) -> list[DeadLetter]:
        rows = DeadLetter.objects.filter(setting_key=self.key)
        known = set(rows.values_list("pk", flat=True))
        self.stage.consume(self.key, count, Settle.REJECT)
        self.stage.follow(lambda: rows.count() == len(known) + count)
        return list(rows.exclude(pk__in=known).order_by("pk"))

    def edit(self, changes: Changes) -> tuple[ReplayJob, ReplaySlice]:
        job = edit_letter(self.letters[0], changes, by=self.person, now=timezone.now(), acknowledged=CODES)
        return job, sliced(job)

    def by_rule(self, rule: Any = SUM) -> tuple[ReplayJob, ReplaySlice]:
        ids = [letter.pk for letter in self.letters]
        options = Options(edit_rule=rule.to_json())
        job = begun(
            self.setting, action="edit", scope="selection", letters=ids, by=self.person, options=options
        )
        return job, sliced(job)

    def send(self, job: ReplayJob, piece: ReplaySlice) -> None:
        send(self.stage, job, piece)

    def counts(self) -> tuple[int, int, int]:
        """Says the broker: in the subscription, in the other one, in the dead-letter queue."""
        return self.stage.count(self.key), self.stage.count(self.other), self.stage.count(f"DLQ.{self.key}")


def send(stage: Stage, job: ReplayJob, piece: ReplaySlice) -> None:
    publisher = AmqpPublisher(stage.account("ops", "amqp"))
    try:
        worker.before_move(job, piece, publisher)
    finally:
        publisher.close()


def sliced(job: ReplayJob) -> ReplaySlice:
    """One slice of all its letters, about to be moved."""
    ids = list(job.items.values_list("letter", flat=True))
    piece = ReplaySlice.objects.create(
        job=job, number=1, first_letter_id=min(ids), last_letter_id=max(ids), size=len(ids), tries=1
    )
    job.items.filter(state="planned").update(slice=piece)
    return piece


def states(job: ReplayJob) -> list[str]:
    return list(LetterEdit.objects.filter(item__job=job).order_by("item").values_list("state", flat=True))


def numbered(count: int) -> list[Message]:
    return [
        Message(body=Typed("string", f'{{"sum": {n}}}'), message_id=Typed("string", f"M-{n}"))
        for n in range(count)
    ]


@pytest.mark.parametrize(
    "id_", [Typed("string", "P-1"), Typed("uuid", "12345678-1234-5678-1234-567812345678"), None]
)
def test_the_copy_has_every_type_and_goes_to_one_queue_only(stage: Stage, id_: Typed | None) -> None:
    scene = Scene(stage, replace(ORDER, message_id=id_))
    letter = scene.letters[0]
    job, piece = scene.edit(Changes('{"sum": 2}', put={"short": Typed("short", 4)}, removed=("flag",)))
    assert scene.counts() == (0, 0, 1) and states(job) == ["planned"]
    scene.send(job, piece)
    assert scene.counts() == (1, 0, 1) and states(job) == ["sent"], "the letter stays until it is moved"
    (encoded,) = stage.consume(scene.key, 1, Settle.ACCEPT)
    copy = decode(encoded)
    original = decode(bytes(letter.encoded))
    assert copy.body == Typed("string", '{"sum": 2}')
    kept = {name: item for name, item in copy.properties.items() if not name.startswith(("ma_", "_AMQ_"))}
    assert kept == {**{n: i for n, i in ORDER.properties.items() if n != "flag"}, "short": Typed("short", 4)}
    for name in (
        "message_id",
        "correlation_id",
        "reply_to",
        "content_type",
        "subject",
        "priority",
        "durable",
    ):
        assert getattr(copy, name) == getattr(original, name), name
    assert copy.annotations["x-opt-jms-msg-type"] == Typed("byte", 5) and copy.delivery_count == 0
    found = identify(encoded)
    assert (found.key.text, found.key.weak) == (letter.message_key, letter.message_key_weak)
    assert (found.dead_letter_queue, found.dead_letter_id) == (letter.queue, letter.orig_message_id + 1)


def test_bytes_stay_bytes(stage: Stage) -> None:
    scene = Scene(stage, Message(body=Typed("binary", b"\0\xff"), body_kind=BodyKind.DATA))
    job, piece = scene.edit(Changes(content=b"\1\xfe\0"))
    scene.send(job, piece)
    (encoded,) = stage.consume(scene.key, 1, Settle.ACCEPT)
    assert (decode(encoded).body, decode(encoded).body_kind) == (Typed("binary", b"\1\xfe\0"), BodyKind.DATA)


def crashed(job: ReplayJob, copies: dict[Any, bytes]) -> None:
    """As if the worker was killed after the broker confirmed the copies and before it could say so."""
    for pk, encoded in copies.items():
        LetterEdit.objects.filter(pk=pk).update(state=EditState.PLANNED, encoded=encoded)


def copies_of(job: ReplayJob) -> dict[Any, bytes]:
    return {
        pk: bytes(encoded)
        for pk, encoded in LetterEdit.objects.filter(item__job=job).values_list("pk", "encoded")
    }


@pytest.mark.parametrize("consumed", [False, True])
def test_sending_again_after_a_kill_makes_no_second_copy(stage: Stage, consumed: bool) -> None:
    scene = Scene(stage, *numbered(1))
    job, piece = scene.edit(Changes('{"sum": 9}'))
    copies = copies_of(job)
    scene.send(job, piece)
    if consumed:
        stage.consume(scene.key, 1, Settle.ACCEPT)
    crashed(job, copies)
    scene.send(job, piece)
    assert states(job) == ["sent"] and scene.counts() == (0 if consumed else 1, 0, 1)


@pytest.mark.kill
def test_a_killed_broker_knows_which_copies_it_has() -> None:
    with throw_away_folder("artemis") as folder:
        service = ArtemisService.create(folder / "broker")
        service.start()
        try:
            stage = Stage(service)
            scene = Scene(stage, *numbered(2))
            job, piece = scene.by_rule()
            worker._make(job, SUM, list(job.items.values_list("pk", flat=True)), timezone.now())
            copies = copies_of(job)
            scene.send(job, piece)
            stage.consume(scene.key, 1, Settle.ACCEPT)
            service.kill()
            service.start()
            again = Stage(service)
            waiting = again.count(scene.key)  # the accept of a moment before the kill may be lost
            crashed(job, copies)
            send(again, job, piece)
            assert waiting in (1, 2) and (again.count(scene.key), again.count(f"DLQ.{scene.key}")) == (
                waiting,
                2,
            )
            again.close()
            stage.close()
        finally:
            service.stop()


def test_letters_to_which_a_rule_does_not_apply_are_left_out_and_say_why(stage: Stage) -> None:
    plain = Message(body=Typed("string", "hello"), message_id=Typed("string", "M-plain"))
    scene = Scene(stage, *numbered(2), plain)
    job, piece = scene.by_rule()
    scene.send(job, piece)
    items = dict(job.items.values_list("letter__message_key", "why"))
    assert items == {"M-0": "", "M-1": "", "M-plain": "no_json"}
    job.refresh_from_db()
    assert job.skipped == {"no_json": 1} and (job.counts["planned"], job.counts["skipped"]) == (2, 1)
    assert scene.counts() == (2, 0, 3)
    edits = LetterEdit.objects.filter(item__job=job).order_by("item")
    assert edits[0].diff == [{"what": "/sum", "before": "0", "after": "2.50"}]
    assert bytes(edits[0].encoded) == b"", "the copy is the broker's now"


def test_many_letters_go_in_portions_and_each_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BYTES_AT_ONCE", 40)
    scene = Scene(stage, *numbered(12))
    job, piece = scene.by_rule()
    scene.send(job, piece)
    scene.send(job, piece)
    assert scene.counts() == (12, 0, 12) and states(job) == ["sent"] * 12
    assert sorted(stage.ids(scene.key, f"t.{scene.key}")) == sorted(f"M-{n}" for n in range(12))


def test_without_a_subscription_nothing_is_sent_and_the_letter_stays(stage: Stage) -> None:
    scene = Scene(stage, *numbered(1))
    stage.management.call("broker", "destroyQueue", scene.key)
    job, piece = scene.edit(Changes('{"sum": 9}'))
    scene.send(job, piece)
    item = job.items.get()
    assert (item.state, item.why, item.edit.state) == ("failed_to_move", "no_subscription", "failed")
    assert stage.count(f"DLQ.{scene.key}") == 1
    job.refresh_from_db()
    assert job.problem and job.counts["failed_to_move"] == 1


@pytest.fixture
def moved(stage: Stage) -> Iterator[tuple[Scene, ReplayJob]]:
    """An edited letter whose copy waits in the subscription."""
    scene = Scene(stage, *numbered(1))
    job, piece = scene.edit(Changes('{"sum": 9}'))
    scene.send(job, piece)
    job.items.update(state="given_back")
    yield scene, job


def report(scene: Scene, encoded: bytes, result: str) -> None:
    """As a KMA reports, from the bytes that it got."""
    about = identify(encoded).record(queue=scene.key, destination=f"t.{scene.key}", count=0, attempt=1)
    assert about.replayed
    run = reports.run(scene.setting, reports.server())
    content = reports.replay_outcome(reports.run_of(run), about, result, occurred_at=timezone.now())
    accept_batch(run.server, reports.Spool().batch(content), timezone.now())


def test_the_outcome_of_the_copy_is_the_outcome_of_the_letter(moved: tuple[Scene, ReplayJob]) -> None:
    scene, job = moved
    (encoded,) = scene.stage.consume(scene.key, 1, Settle.ACCEPT)
    report(scene, encoded, "handled")
    assert job.items.get().outcome == "handled"


def test_a_copy_that_dies_is_the_next_chapter_of_the_case(moved: tuple[Scene, ReplayJob]) -> None:
    scene, job = moved
    (again,) = scene.die(1)
    item = job.items.get()
    assert (item.outcome, item.died_as, again.chapter) == ("dead_again", again, 2)
    assert again.message_key == scene.letters[0].message_key
    scene.letters = [again]
    second, piece = scene.edit(Changes('{"sum": 10}'))
    scene.send(second, piece)
    (encoded,) = scene.stage.consume(scene.key, 1, Settle.ACCEPT)
    found = identify(encoded)
    assert (found.key.text, found.dead_letter_id) == (again.message_key, again.orig_message_id + 1)
    report(scene, encoded, "handled")
    second.items.update(state="given_back")
    outcomes = dict(second.items.model.objects.filter(job__in=[job, second]).values_list("job", "outcome"))
    assert outcomes[job.pk] == "dead_again"
