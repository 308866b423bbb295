"""Dead letters that have left their queues: the body goes after some days, the row after more; what is dead
stays."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.utils import timezone

from agents.models import LaunchSetting
from console.jobs import crash
from contract.typed import Typed
from dlq.models import (
    Action,
    DeadLetter,
    ItemState,
    JobState,
    LetterContent,
    LetterEdit,
    LetterState,
    Outcome,
    ReplayItem,
    ReplayJob,
)
from retention import batches
from retention.ages import dead_letters, limits
from retention.models import RetentionFigure, RetentionRun
from retention.worker import run_retention_turn
from tests.web import letters, reports
from tests.web.reports import AT
from tests.web.rows import api_client
from tests.web.test_dlq_words_lost import manage

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
SECRET = "parcel secret"
LEFT = (LetterState.GONE, LetterState.GIVEN_BACK, LetterState.DISCARDED)


@pytest.fixture(autouse=True)
def quick(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MA_KEEP_DEAD_LETTERS_DAYS, settings.MA_KEEP_DEAD_LETTER_BODIES_DAYS = 180, 30
    monkeypatch.setattr(batches, "let_others_write", lambda took: None)
    monkeypatch.setattr(batches, "FIRST", 2)


@pytest.fixture
def orders(db: None) -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


def letter(number: int, days: float, state: str = LetterState.GONE, key: str = "orders") -> DeadLetter:
    """It took its state so many days ago."""
    properties = {"customer": Typed("string", f"customer{number}")}
    row = letters.dead(key, number, f"ID:{number}", body=Typed("string", SECRET), properties=properties)
    DeadLetter.objects.filter(pk=row.pk).update(state=state, state_at=timezone.now() - timedelta(days=days))
    return row


def replayed(row: DeadLetter, outcome: str = Outcome.HANDLED, **of_job: Any) -> ReplayItem:
    ended = timezone.now() - timedelta(days=170)
    fields = {"state": JobState.DONE, "action": Action.GIVE_BACK, "finished_at": ended} | of_job
    job = ReplayJob.objects.create(setting_key=row.setting_key, scope="selection", total=1, **fields)
    return ReplayItem.objects.create(
        job=job, letter=row, state=ItemState.GIVEN_BACK, outcome=outcome, outcome_at=ended, state_at=ended
    )


def apply() -> dict[tuple[str, str], int]:
    run = run_retention_turn(timezone.now(), every=timedelta(0))
    assert run is not None
    assert run.state == "done", run.problem
    return {(row.what, row.setting_key): row.deleted for row in run.figures.all()}


def has_body(row: DeadLetter) -> bool:
    content = LetterContent.objects.get(pk=row.pk)
    assert bool(content.encoded) == bool(content.body_text)
    return bool(content.encoded)


def dry_run() -> dict[tuple[str, str], dict[str, Any]]:
    out = StringIO()
    call_command("apply_retention", "--dry-run", "--json", stdout=out)
    rows = map(json.loads, out.getvalue().splitlines())
    return {
        (row["what"], row["setting"]): row for row in rows if "what" in row and row["what"] != "protocols"
    }


@pytest.mark.parametrize("state", LEFT)
def test_a_body_goes_after_its_days_and_the_row_after_more(orders: LaunchSetting, state: str) -> None:
    young, old, oldest = (letter(n, days, state) for n, days in enumerate((29, 31, 181)))
    apply()

    assert not has_body(old), "the body of a letter that left 31 days ago is still there"
    assert has_body(young) and not DeadLetter.objects.filter(pk=oldest.pk).exists()
    assert not LetterContent.objects.filter(pk=oldest.pk).exists()
    assert LetterContent.objects.get(pk=old.pk).properties, "properties are of the case file"
    assert apply() == {}


def test_what_is_dead_is_kept_whole_however_old_it_is(orders: LaunchSetting) -> None:
    rows = [letter(n, 4000, LetterState.DEAD) for n in range(3)]
    gone = letter(9, 4000)
    apply()

    assert not DeadLetter.objects.filter(pk=gone.pk).exists()
    assert DeadLetter.objects.count() == 3 and all(has_body(row) for row in rows)


def test_zero_days_keep_for_ever(orders: LaunchSetting, settings: Any) -> None:
    row = letter(1, 4000)
    settings.MA_KEEP_DEAD_LETTERS_DAYS = settings.MA_KEEP_DEAD_LETTER_BODIES_DAYS = 0
    assert apply() == {} and has_body(row) and dry_run() == {}
    settings.MA_KEEP_DEAD_LETTER_BODIES_DAYS = 30
    apply()
    assert not has_body(row)


def test_a_dry_run_says_by_setting_what_the_run_then_does(orders: LaunchSetting) -> None:
    for number in range(5):
        letter(number, 40)
    letter(10, 200)
    letter(11, 40, key="other")
    held = letter(12, 40)
    replayed(held, Outcome.WAITING)
    foreseen = dry_run()
    assert {of: (row["would_go"], row["kept"], row["at_least"]) for of, row in foreseen.items()} == {
        ("dead_letters", "orders"): (1, {}, False),
        ("letter_bodies", "orders"): (5, {"outcome": 1}, False),
        ("letter_bodies", "other"): (1, {}, False),
    }
    assert DeadLetter.objects.count() == 8 and not RetentionRun.objects.exists()

    assert apply() == {of: row["would_go"] for of, row in foreseen.items()}


def test_it_stays_while_a_job_has_it_or_its_outcome_is_awaited(orders: LaunchSetting) -> None:
    rows = [letter(n, 200, LetterState.GIVEN_BACK) for n in range(3)]
    job = replayed(rows[0], state=JobState.PAUSED, finished_at=None)
    awaited = replayed(rows[1], Outcome.WAITING)
    replayed(rows[2])
    apply()
    assert set(DeadLetter.objects.all()) == set(rows[:2]) and has_body(rows[0]) and has_body(rows[1])

    ReplayJob.objects.filter(pk=job.job_id).update(state=JobState.DONE, finished_at=timezone.now())
    ReplayItem.objects.filter(pk=awaited.pk).update(outcome=Outcome.HANDLED)
    apply()
    assert not DeadLetter.objects.exists() and not ReplayItem.objects.exists()
    assert ReplayJob.objects.count() == 3


def test_it_stays_while_the_archive_does_not_have_it(
    orders: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [letter(1, 40), letter(2, 200), letter(3, 200)]
    replayed(rows[2])
    safe = {"letters": AT, "replays": None}
    for asking in (dead_letters, limits):
        monkeypatch.setattr(asking, "archived_before", lambda kind, now: safe.get(kind))
    assert {row["kept"].get("archive") for row in dry_run().values()} == {2, 3}
    apply()
    assert DeadLetter.objects.count() == 3 and all(has_body(row) for row in rows)

    safe = {"letters": timezone.now(), "replays": AT - timedelta(days=1000)}
    apply()
    # With the row would go what became of its replay.
    assert set(DeadLetter.objects.all()) == {rows[0], rows[2]} and not has_body(rows[0])
    safe = {}
    apply()
    assert DeadLetter.objects.get() == rows[0]


def test_copies_of_edits_go_after_their_jobs(orders: LaunchSetting) -> None:
    change = [{"what": "body", "before": SECRET, "after": "mended"}]
    ages = [
        (timezone.now() - timedelta(days=days), done) for days, done in ((40, True), (10, True), (40, False))
    ]
    edits = []
    for number, (at, done) in enumerate(ages):
        row = letter(number, 0, LetterState.DEAD)
        how: dict[str, Any] = {} if done else {"state": JobState.PAUSED}
        item = replayed(row, action=Action.EDIT, finished_at=at if done else None, **how)
        edits.append(LetterEdit.objects.create(item=item, encoded=b"copy", diff=change, planned_at=at))
    apply()

    left = [bool(LetterEdit.objects.get(pk=edit.pk).encoded) for edit in edits]
    assert left == [False, True, True]
    assert [bool(LetterEdit.objects.get(pk=edit.pk).diff) for edit in edits] == left


def test_its_words_go_with_the_body_and_a_reindex_does_not_bring_them_back(
    orders: LaunchSetting, root: User
) -> None:
    letter(1, 40)
    letter(2, 10)
    assert _found(root, "secret") == [1, 2]
    apply()
    assert _found(root, "secret") == [2] and _found(root, "customer1") == [1]

    call_command("reindex", stdout=StringIO())
    assert _found(root, "secret") == [2] and _found(root, "customer1") == [1]


def _found(root: User, text: str) -> list[int]:
    answer = api_client(root).get("/api/v1/dead-letters/", {"text": text, "state": "every"})
    return sorted(each["orig_message_id"] for each in answer.json()["results"])


def test_masks_that_changed_since_cost_the_index_nothing_else(orders: LaunchSetting, root: User) -> None:
    letter(1, 40)
    letter(2, 10)
    LaunchSetting.objects.filter(pk=orders.pk).update(masked_properties=["region"])
    apply()
    call_command("reindex", stdout=StringIO())
    assert _found(root, "secret") == [2] and _found(root, "customer1") == [1]


def test_one_that_comes_back_before_its_chunk_stays_whole(
    orders: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention has looked at it; then a walk finds it in its queue."""
    rows = [letter(n, 40) for n in range(4)]
    seen: list[float] = []

    def comes_back(took: float) -> None:
        seen.append(took)
        DeadLetter.objects.filter(pk=rows[3].pk).update(state=LetterState.DEAD)

    monkeypatch.setattr(batches, "let_others_write", comes_back)
    assert apply() == {("letter_bodies", "orders"): 3}
    assert seen and has_body(rows[3]) and not has_body(rows[0])


def test_its_deaths_are_counted_on_when_the_first_rows_are_gone(orders: LaunchSetting) -> None:
    first = letters.dead("orders", 1, "ID:same")
    second = letters.dead("orders", 2, "ID:same")
    DeadLetter.objects.filter(pk=first.pk).update(
        state=LetterState.GONE, state_at=timezone.now() - timedelta(days=200)
    )
    apply()
    assert DeadLetter.objects.get() == second
    assert letters.dead("orders", 3, "ID:same").chapter == 3


def test_pages_rest_and_files_keep_the_case_and_say_why_the_body_is_gone(
    orders: LaunchSetting, root: User, client: Client
) -> None:
    row = letter(1, 40)
    apply()
    client.force_login(root)
    why = (
        "Retention deleted the body after the message left its queue. The properties and the "
        "case file are kept."
    )

    page = client.get(f"/letters/{row.pk}/").content.decode()
    assert (
        why in page
        and "customer1" in page
        and "The body is empty" not in page
        and "Download full body" not in page
    )
    body = client.get(f"/letters/{row.pk}/body/")
    assert (body.status_code, body.content.decode()[: len(why)]) == (410, why)
    assert (
        "body deleted by retention"
        in client.get("/cases/", {"key": row.message_key, "setting": "orders"}).content.decode()
    )
    assert "deleted" in client.get("/letters/?state=gone").content.decode()
    edit = client.get(f"/letters/{row.pk}/edit/", follow=True).content.decode()
    assert (
        "Broker count: no longer." in edit
        or "Cannot edit: retention deleted the body after the message left its queue." in edit
    )

    whole = api_client(root).get(f"/api/v1/dead-letters/{row.pk}/").json()
    assert whole["body"]["deleted"]["why"] == "retention" and whole["body_text"] == ""
    assert whole["body_deleted_at"] == whole["body"]["deleted"]["at"].replace("+00:00", "Z")
    assert whole["properties"][0]["value"] == "customer1"

    for bodies in ("0", "1"):
        lines = b"".join(client.get(f"/letters/export/?file=jsonl&bodies={bodies}&state=gone")).decode()
        (said,) = [json.loads(line) for line in lines.splitlines()]
        assert said["body_deleted_at"] and said.get("body") is None and said.get("message") is None


def test_the_page_says_how_long_what_goes_next_and_what_went(
    orders: LaunchSetting, root: User, client: Client
) -> None:
    letter(1, 40)
    letter(2, 40)
    letter(3, 200)
    replayed(letter(4, 40), Outcome.WAITING)
    client.force_login(root)

    text = " ".join(client.get("/retention/").content.decode().split())
    assert "180 days" in text and "180 days" in text
    assert "the bodies of 2 messages that left the DLQ before" in text
    assert "1 message that left the DLQ before" in text
    assert "1 kept: the outcome is not known yet" in text
    apply()
    text = " ".join(client.get("/retention/").content.decode().split())
    assert "bodies of dead letters: 2" in text and "dead letters: 1" in text


def test_the_page_counts_a_thousand_and_says_that_there_are_more(
    orders: LaunchSetting, root: User, client: Client
) -> None:
    first = letter(0, 200)
    fields = [field.attname for field in DeadLetter._meta.concrete_fields if not field.primary_key]
    same = {name: getattr(DeadLetter.objects.get(pk=first.pk), name) for name in fields}
    DeadLetter.objects.bulk_create(
        [DeadLetter(**same | {"orig_message_id": 10_000 + number}) for number in range(2100)], batch_size=500
    )
    client.force_login(root)
    text = " ".join(client.get("/retention/").content.decode().split())
    assert "1,000+ messages that left the DLQ before" in text
    assert (
        "Only the first 1,000 dead letters of each type are counted across all settings. To "
        "count all of them:"
    ) in text
    # Whoever wants to know it exactly asks in a terminal.
    assert dry_run()["dead_letters", "orders"]["would_go"] == 2101


@pytest.mark.process
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "at",
    [
        "letter ages: words forgotten",
        "shrink: rows taken out",
        "letter ages: bodies deleted",
        "letter ages: contents deleted",
    ],
)
def test_killed_inside_a_chunk_nothing_of_it_is_done_and_the_next_run_does_it(
    orders: LaunchSetting, root: User, at: str
) -> None:
    rows = [letter(n, 40) for n in range(3)] + [letter(5, 200)]
    killed = manage("apply_retention", MA_CRASH_AT=at, MA_TEST_CRASHES="1")
    assert killed.returncode == crash.EXIT_CODE, killed.stderr[-500:]
    gone = set() if at == "letter ages: contents deleted" else {rows[3].pk}
    assert {row.pk for row in rows} - set(DeadLetter.objects.values_list("pk", flat=True)) == gone
    assert all(has_body(row) for row in rows[:3]) and _found(root, "secret")[:3] == [0, 1, 2]
    assert not RetentionFigure.objects.filter(what="letter_bodies").exists()

    # What was killed holds its lease for a minute.
    with transaction.atomic():
        RetentionRun.objects.update(lease_until=None)
    assert manage("apply_retention").returncode == 0
    assert not any(has_body(row) for row in rows[:3]) and DeadLetter.objects.count() == 3
    assert _found(root, "secret") == [] and _found(root, "customer1") == [1]
    assert RetentionFigure.objects.get(what="letter_bodies").deleted == 3
    assert RetentionFigure.objects.get(what="dead_letters").deleted == 1
