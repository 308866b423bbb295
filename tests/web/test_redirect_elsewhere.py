"""Redirecting dead letters to a setting of another destination: who may, what is said first, what is refused,
and how the case goes on there."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any, NoReturn

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from agents.models import Activation, LaunchSetting, Pool, PoolGrant, Run
from agents.provisioning.topology import REMOVING
from agents.settings import removal
from console.audit.models import AuditEntry
from console.operations.refusals import Refused
from contract.messages import BlockedMessage
from contract.wire import dump
from dlq.models import (
    Action,
    DeadLetter,
    ItemState,
    LetterState,
    Outcome,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    SliceState,
)
from dlq.replay import counts
from dlq.replay.creation import begin_replay
from dlq.replay.preflight.rules import CODES
from dlq.replay.requests import ReplayRequest, blocked_attempt
from dlq.replay.worker import pacer
from dlq.replay.worker.pacer import WAITS_FOR, Gate, read_gate
from dlq.replay.worker.step import ReplayWorker
from failures.intake.batch import accept_batch
from tests.dlq.jobs import begun, taken
from tests.web import letters, reports
from tests.web.pages import Elements
from tests.web.reports import AT, Spool, without_id

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
REPLAYS, PREFLIGHT = "/api/v1/replays/", "/api/v1/preflight/"
PAGE = "/dead-letters/orders/redirect/"
READS = ("dlq.view_deadletter", "dlq.view_replayjob")


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def archive(orders: LaunchSetting) -> LaunchSetting:
    """Of another destination, and of another pool."""
    return reports.setting("archive", pool=Pool.objects.create(name="elsewhere"))


@pytest.fixture
def three(orders: LaunchSetting) -> list[DeadLetter]:
    return [letters.dead("orders", number, f"ID:{number}") for number in (10, 11, 12)]


def rest(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(user)["Authorization"])
    return client


@pytest.fixture
def mover() -> User:
    """May redirect beyond the destination everywhere, and nothing else."""
    return reports.person("mover", *READS, "dlq.redirect_elsewhere")


def asked(three: list[DeadLetter], **more: Any) -> dict[str, Any]:
    known = {"setting": "orders", "action": "redirect", "target": "archive", "acknowledge": list(CODES)}
    return {**known, "letters": [row.pk for row in three], **more}


def refused() -> list[tuple[str, str]]:
    return list(AuditEntry.objects.filter(result="refused").order_by("pk").values_list("action", "by_name"))


def granted(name: str, **by_pool: tuple[str, ...]) -> User:
    """A person of a group that may do these things in these pools."""
    person, group = reports.person(name), Group.objects.create(name=f"of {name}")
    person.groups.add(group)
    for pool, rights in by_pool.items():
        may = {f"may_{right}": True for right in rights}
        PoolGrant.objects.create(pool=Pool.objects.get(name=pool), group=group, **may)
    return person


def block(setting: LaunchSetting, attempt: int) -> Run:
    LaunchSetting.objects.filter(pk=setting.pk).update(ordered=True, enabled=True)
    setting.refresh_from_db()
    run = reports.run(setting, reports.server())
    told = {"blocked": dump(BlockedMessage("ID:poison", attempt)), "reported_at": timezone.now()}
    Run.objects.filter(pk=run.pk).update(**told)
    return run


# -- who may -------------------------------------------------------------------------------------------------


BOTH = ("redirect", "redirect_elsewhere")


@pytest.mark.parametrize(
    ("here", "there", "status"),
    [
        (("see_letters", "redirect_elsewhere"), ("redirect_elsewhere",), 201),
        (("see_letters", "redirect_elsewhere"), ("redirect",), 403),
        (("see_letters", "redirect"), ("redirect_elsewhere",), 403),
        (("see_letters", "redirect"), ("redirect",), 403),
        (("see_letters", *BOTH), (), 403),
        (("redirect_elsewhere",), ("see_letters", *BOTH), 403),
        (("see_letters",), ("see_letters", *BOTH), 403),
    ],
)
def test_the_right_is_needed_in_both_pools(
    archive: LaunchSetting,
    three: list[DeadLetter],
    here: tuple[str, ...],
    there: tuple[str, ...],
    status: int,
) -> None:
    client = rest(granted("mate", demo=here, elsewhere=there))
    assert client.post(PREFLIGHT, asked(three)).status_code == (200 if status == 201 else status)
    assert client.post(REPLAYS, asked(three)).status_code == status
    assert ReplayJob.objects.count() == (status == 201)
    assert refused() == ([] if status == 201 else [("dead_letters.redirect", "mate")])


def test_within_a_destination_the_right_to_redirect_is_asked_for_as_before(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter], mover: User
) -> None:
    LaunchSetting.objects.filter(pk=archive.pk).update(destination=orders.destination)
    assert rest(mover).post(REPLAYS, asked(three)).status_code == 403
    near = reports.person("near", *READS, "dlq.redirect")
    assert rest(near).post(REPLAYS, asked(three)).status_code == 201


def test_who_lacks_it_is_told_its_name(archive: LaunchSetting, three: list[DeadLetter]) -> None:
    answer = rest(reports.person("near", *READS, "dlq.redirect")).post(REPLAYS, asked(three))
    assert "Can redirect dead letters to settings with another destination" in answer.json()["detail"]
    assert "“demo”" in answer.json()["detail"], "the pool that lacks it first"


def test_operator_viewer_and_outsider(archive: LaunchSetting, three: list[DeadLetter], mover: User) -> None:
    viewer, outsider = reports.person("viewer", *READS), reports.person("outsider")
    answers = [rest(person).post(REPLAYS, asked(three)).status_code for person in (mover, viewer, outsider)]
    assert answers == [201, 403, 403]
    for person, status in ((mover, 200), (viewer, 403), (outsider, 403)):
        client = Client()
        client.force_login(person)
        assert client.get(f"{PAGE}?letter={three[0].pk}").status_code == status


def job_to(orders: LaunchSetting, target: LaunchSetting, rows: list[DeadLetter], **state: Any) -> ReplayJob:
    job = begun(
        orders, by=reports.person("began"), action=Action.REDIRECT, scope="selection", target=target,
        letters=[row.pk for row in rows],
    )  # fmt: skip
    ReplayJob.objects.filter(pk=job.pk).update(**state)
    return job


@pytest.mark.parametrize(
    ("verb", "state", "more"),
    [("resume", "paused", ()), ("approve", "awaiting", ("dlq.approve",))],
)
def test_resuming_and_approving_ask_for_it_at_both_ends(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter],
    verb: str, state: str, more: tuple[str, ...],
) -> None:  # fmt: skip
    job = job_to(orders, archive, three, state=state)
    path = f"{REPLAYS}{job.pk}/{verb}/"
    near = reports.person("near", *READS, "dlq.redirect", *more)
    one_end = granted("one-end", demo=("see_letters", *BOTH), elsewhere=("redirect",))
    one_end.user_permissions.add(*near.user_permissions.filter(codename__in=("approve", "view_replayjob")))
    far = reports.person("far", *READS, "dlq.redirect_elsewhere", *more)
    assert [rest(person).post(path).status_code for person in (near, one_end)] == [403, 403]
    assert {name for _code, name in refused()} == {"near", "one-end"}
    job.refresh_from_db()
    assert job.state == state
    assert rest(far).post(path).status_code == 200
    job.refresh_from_db()
    assert job.state == "planned"


def test_stopping_one_needs_the_right_where_the_messages_are(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter]
) -> None:
    job = job_to(orders, archive, three)
    path = f"{REPLAYS}{job.pk}/cancel/"
    assert rest(reports.person("near", *READS, "dlq.redirect")).post(path).status_code == 403
    here = granted("here", demo=("see_letters", "redirect_elsewhere"))
    assert rest(here).post(path).json()["state"] == "cancelled"


# -- what is said first --------------------------------------------------------------------------------------


def test_the_preflight_lists_what_differs_and_it_has_to_be_acknowledged(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter], mover: User
) -> None:
    archive.subscribed.max_attempts = 3
    archive.subscribed.save()
    LaunchSetting.objects.filter(pk=archive.pk).update(mode="AUTO", masked_properties=["iban"])
    DeadLetter.objects.filter(pk=three[0].pk).update(delivery_count=4)
    told = rest(mover).post(PREFLIGHT, asked(three, acknowledge=[])).json()
    assert {each["code"]: (each["source"], each["target"]) for each in told["differences"]} == {
        "destination": ("t.orders", "t.archive"),
        "mode": ("TRANSACTED", "AUTO"),
        "max_attempts": (10, 3),
        "masked_properties": ([], ["iban"]),
        "attempted": ([0, 4], [0, 0]),
    }
    texts = {each["code"]: each["text"] for each in told["differences"]}
    assert texts["attempted"].startswith("Attempts so far: 0 to 4 → 0.")
    assert texts["masked_properties"].endswith("The masks of the other setting apply to these messages.")
    warning = next(each for each in told["warnings"] if each["code"] == "other_destination")
    assert (
        warning["n"] == 5
        and "The setting belongs to another destination: 5 processing parameters differ." in warning["text"]
    )

    answer = rest(mover).post(REPLAYS, asked(three, acknowledge=["no_consumer"]))
    assert (answer.status_code, answer.json()["warnings"]) == (409, ["other_destination"])
    job = rest(mover).post(REPLAYS, asked(three, acknowledge=["no_consumer", "other_destination"])).json()
    assert (job["target"], job["target_queue"], job["acknowledged"]) == (
        "archive", "archive", ["no_consumer", "other_destination"],
    )  # fmt: skip
    entry = AuditEntry.objects.get(action="dead_letters.redirect", result="done")
    assert (entry.detail["from"], entry.detail["to"]) == ("DLQ.orders", "archive")
    assert "other_destination" in entry.detail["acknowledged"]


def test_within_a_destination_nothing_is_compared(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter]
) -> None:
    LaunchSetting.objects.filter(pk=archive.pk).update(destination=orders.destination, mode="AUTO")
    told = rest(reports.person("near", *READS, "dlq.redirect")).post(PREFLIGHT, asked(three)).json()
    assert told["differences"] == []
    assert "other_destination" not in {each["code"] for each in told["warnings"]}


def looked_at(person: User, path: str) -> Elements:
    client = Client()
    client.force_login(person)
    return Elements(client.get(path).content.decode())


def options(page: Elements, *, selected: bool = False) -> list[str]:
    """Those of the choice of a target."""
    inside, found = "", []
    for tag, attributes in page.found:
        if tag == "select":
            inside = str(attributes["name"])
        if tag == "option" and inside == "target" and (not selected or "selected" in attributes):
            found.append(str(attributes["value"]))
    return found


def test_the_page_offers_settings_by_destination_those_of_the_same_one_first(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter], mover: User
) -> None:
    reports.setting("beside", destination=orders.destination)
    reports.setting("alone", kind="standalone", destination=None)
    path = f"{PAGE}?letter={three[0].pk}"
    far = looked_at(mover, path)
    groups = [attributes.get("label") for tag, attributes in far.found if tag == "optgroup"]
    assert (groups, options(far)) == (["Other destination: t.archive"], ["archive"])
    both = reports.person("both", *READS, "dlq.redirect", "dlq.redirect_elsewhere")
    page = looked_at(both, path)
    groups = [attributes.get("label") for tag, attributes in page.found if tag == "optgroup"]
    assert groups == ["Same destination", "Other destination: t.archive"]
    assert options(page) == ["beside", "archive"] and "Processing differences" not in page.text
    near = reports.person("near", *READS, "dlq.redirect")
    assert options(looked_at(near, path)) == ["beside"]


def test_the_page_begins_only_what_was_compared_and_ticked(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter], mover: User
) -> None:
    reports.setting("billing", pool=archive.pool)
    client = Client()
    client.force_login(mover)
    page = looked_at(mover, f"{PAGE}?letter={three[0].pk}")
    assert "Processing differences" in page.text and "Destination t.orders t.archive" in page.text
    sent = {"letters": str(three[0].pk), "compared": "archive", "acknowledge": list(CODES)}
    shown = Elements(client.post(PAGE, sent | {"target": "billing"}).content.decode()).text
    assert (
        "The job was not started: acknowledge the warnings below first." in shown
        and "Destination t.orders t.billing" in shown
    )
    assert not ReplayJob.objects.exists(), "of billing nobody has seen what differs"
    unticked = client.post(PAGE, sent | {"target": "archive", "acknowledge": ["no_consumer"]})
    assert (
        "The job was not started: acknowledge the warnings below first." in unticked.content.decode()
        and not ReplayJob.objects.exists()
    )
    assert client.post(PAGE, sent | {"target": "billing", "compared": "billing"}).status_code == 302
    assert ReplayJob.objects.get().target_key == "billing"


def test_a_target_that_could_get_nothing_is_not_the_first_that_is_shown(
    archive: LaunchSetting, three: list[DeadLetter], mover: User
) -> None:
    block(archive, 3)
    reports.setting("billing", pool=archive.pool)
    page = looked_at(mover, f"{PAGE}?letter={three[0].pk}")
    assert "Destination t.orders t.billing" in page.text
    assert options(page, selected=True) == ["billing"]


def test_the_buttons_are_there_for_either_right(
    archive: LaunchSetting, three: list[DeadLetter], mover: User
) -> None:
    for person, there in ((mover, True), (reports.person("viewer", *READS), False)):
        assert (
            f"{PAGE}?letter={three[0].pk}" in looked_at(person, f"/letters/{three[0].pk}/").links()
        ) is there
        assert (f"{PAGE}?all=1" in str(looked_at(person, "/dead-letters/orders/").found)) is there


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("dlq", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_the_command_says_the_same(archive: LaunchSetting, three: list[DeadLetter], mover: User) -> None:
    how = ("--setting", "orders", "--target", "archive", "--as", "mover", "--all")
    lines = told("preflight", "--action", "redirect", *how).splitlines()
    assert "difference Destination: t.orders → t.archive." in lines
    assert any(line.startswith("warning    other_destination: ") for line in lines)
    with pytest.raises(CommandError, match="--acknowledge other_destination"):
        told("redirect", *how, "--reason", "wrong queue", "--acknowledge", "no_consumer")
    job = json.loads(told("redirect", *how, "--reason", "wrong queue", "--acknowledge", "all", "--json"))
    assert (job["action"], job["target"], job["total"]) == ("redirect", "archive", 3)


def test_the_command_refuses_who_may_not(archive: LaunchSetting, three: list[DeadLetter]) -> None:
    reports.person("near", *READS, "dlq.redirect")
    with pytest.raises(CommandError, match="another destination"):
        told(
            "redirect", "--setting", "orders", "--target", "archive", "--as", "near", "--all", "--reason", "x"
        )
    assert refused() == [("dead_letters.redirect", "near")]


# -- what is refused -----------------------------------------------------------------------------------------


def removing(setting: LaunchSetting) -> None:
    LaunchSetting.objects.filter(pk=setting.pk).update(wanted_hash=REMOVING)


def standalone(setting: LaunchSetting) -> None:
    LaunchSetting.objects.filter(pk=setting.pk).update(kind="standalone", destination=None)


@pytest.mark.parametrize(
    ("becomes", "code", "more"),
    [
        (removing, "target_removed", {}),
        (standalone, "target_standalone", {}),
        (lambda setting: block(setting, 7), "target_blocked", {"attempt": 7}),
    ],
)
def test_the_preflight_refuses_what_the_job_would_refuse(
    archive: LaunchSetting,
    three: list[DeadLetter],
    mover: User,
    becomes: Any,
    code: str,
    more: dict[str, Any],
) -> None:
    becomes(archive)
    job, ahead = rest(mover).post(REPLAYS, asked(three)), rest(mover).post(PREFLIGHT, asked(three))
    assert (ahead.status_code, without_id(ahead)) == (job.status_code, without_id(job))
    answer = ahead.json()
    assert (ahead.status_code, answer["error"]) == (409, code)
    assert answer["what_to_do"] and {name: answer[name] for name in more} == more
    assert not ReplayJob.objects.exists() and refused() == [("dead_letters.redirect", "mover")]
    client = Client()
    client.force_login(mover)
    shown = client.get(f"{PAGE}?letter={three[0].pk}", follow=True).content.decode()
    assert "Processing differences" not in shown


def test_a_target_that_is_not_there_is_not_found(three: list[DeadLetter], mover: User) -> None:
    assert rest(mover).post(REPLAYS, asked(three)).status_code == 404


def test_a_disabled_target_stays_a_warning(
    archive: LaunchSetting, three: list[DeadLetter], mover: User
) -> None:
    LaunchSetting.objects.filter(pk=archive.pk).update(enabled=False)
    codes = {each["code"] for each in rest(mover).post(PREFLIGHT, asked(three)).json()["warnings"]}
    assert {"disabled", "other_destination"} <= codes


def test_an_ordered_target_that_nothing_blocks_stays_a_warning(
    archive: LaunchSetting, three: list[DeadLetter], mover: User
) -> None:
    run = block(archive, 3)
    assert blocked_attempt(archive) == 3
    Run.objects.filter(pk=run.pk).update(closed_at=timezone.now())
    assert blocked_attempt(archive) is None
    assert "ordered" in {
        each["code"] for each in rest(mover).post(PREFLIGHT, asked(three)).json()["warnings"]
    }


def test_within_a_destination_a_target_that_is_blocked_is_no_refusal(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter]
) -> None:
    LaunchSetting.objects.filter(pk=archive.pk).update(destination=orders.destination)
    block(archive, 3)
    near = reports.person("near", *READS, "dlq.redirect")
    assert rest(near).post(REPLAYS, asked(three)).status_code == 201


def test_what_blocks_is_what_was_reported_last(archive: LaunchSetting) -> None:
    block(archive, 3)
    other = reports.run(archive, reports.server("srv-2"))
    later = timezone.now() + timedelta(seconds=5)
    Run.objects.filter(pk=other.pk).update(blocked=dump(BlockedMessage("ID:new", 9)), reported_at=later)
    assert blocked_attempt(archive) == 9


@pytest.mark.both_databases
def test_of_a_removal_and_a_redirect_the_second_one_is_refused(
    archive: LaunchSetting, orders: LaunchSetting, three: list[DeadLetter], mover: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    LaunchSetting.objects.filter(pk=archive.pk).update(enabled=False)
    archive.refresh_from_db()
    wish = ReplayRequest(
        orders, Action.REDIRECT, "selection", [row.pk for row in three], target=archive, acknowledged=CODES
    )
    # Decided right after the check, by another process: this request still has the row of before.
    with monkeypatch.context() as patched:
        patched.setattr("dlq.replay.creation._check_going", lambda _verdict: removing(archive))
        with pytest.raises(Refused) as late:
            begin_replay(wish, by=mover, now=timezone.now())
    assert late.value.code == "target_removed" and not ReplayJob.objects.exists()

    LaunchSetting.objects.filter(pk=archive.pk).update(wanted_hash="")
    job = begin_replay(wish, by=mover, now=timezone.now())
    found = removal.refusal_by_rows(LaunchSetting.objects.get(pk=archive.pk))
    assert found is not None and found.code == "awaits_messages"
    ReplayJob.objects.filter(pk=job.pk).update(state="done", finished_at=timezone.now())
    assert removal.refusal_by_rows(LaunchSetting.objects.get(pk=archive.pk)) is None


# -- while it moves ------------------------------------------------------------------------------------------


def no_queues() -> NoReturn:
    raise AssertionError("nothing is moved here")


class Silent:
    """A broker that nobody may ask."""

    def attribute(self, *_: object) -> NoReturn:
        raise AssertionError("asked")


def test_a_target_that_is_blocked_meanwhile_is_waited_for_and_then_the_job_pauses(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter]
) -> None:
    now, silent = timezone.now(), Silent()
    job = taken(ReplayWorker(no_queues), job_to(orders, archive, three))
    assert read_gate(job, silent, now).gate is Gate.OPEN  # type: ignore[arg-type]  # no broker is asked
    run = block(archive, 6)
    job.goes_on_all_the_same = True
    asked_first = read_gate(job, silent, now)  # type: ignore[arg-type]  # as above
    assert (asked_first.gate, asked_first.why, asked_first.blocked) == (Gate.WAIT, "blocked", 6)
    assert job.stopping_since == now
    late = read_gate(job, silent, now + WAITS_FOR)  # type: ignore[arg-type]  # as above
    assert late.gate is Gate.PAUSE and pacer.pause(job, late, now + WAITS_FOR)
    paused = ReplayJob.objects.get(pk=job.pk)
    assert (paused.state, paused.stopping_since) == ("paused", None)
    assert paused.pause_reason == {"code": "target_blocked", "setting": "archive", "attempt": 6}
    chief = reports.person("chief", *READS, "dlq.redirect_elsewhere")
    shown = looked_at(chief, f"/replays/{job.pk}/").text
    assert "A message (attempt 6) is blocking the ordered subscription of “archive”." in shown
    assert "paused     target_blocked: a message of archive at attempt 6" in told(
        "job", str(job.pk), "--as", "chief"
    )
    Run.objects.filter(pk=run.pk).update(blocked=None)
    assert read_gate(job, silent, now).gate is Gate.OPEN  # type: ignore[arg-type]  # as above


def test_within_a_destination_a_message_that_blocks_stops_no_job(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter]
) -> None:
    LaunchSetting.objects.filter(pk=archive.pk).update(destination=orders.destination)
    archive.refresh_from_db()
    job = job_to(orders, archive, three, state="running")
    block(archive, 6)
    job.refresh_from_db()
    assert read_gate(job, Silent(), timezone.now()).gate is Gate.OPEN  # type: ignore[arg-type]  # none is asked


# -- its case goes on there ----------------------------------------------------------------------------------


def redirected(orders: LaunchSetting, archive: LaunchSetting, *rows: DeadLetter) -> ReplayJob:
    """A job that is over."""
    now = AT + timedelta(minutes=2)
    job = ReplayJob.objects.create(
        setting=orders, setting_key="orders", action=Action.REDIRECT, scope="selection", state="done",
        created_at=now, total=len(rows), target_key=archive.key, source_queue="DLQ.orders",
        target_queue=archive.key, reason="a secret reason", by=reports.person("secret-person"),
    )  # fmt: skip
    piece = ReplaySlice.objects.create(
        job=job, number=1, first_letter_id=rows[0].pk, last_letter_id=rows[-1].pk, size=len(rows),
        state=SliceState.CHECKED, tries=1, planned_at=now, moved_at=now,
    )  # fmt: skip
    for row in rows:
        ReplayItem.objects.create(job=job, letter=row, slice=piece, state=ItemState.GIVEN_BACK, state_at=now)
    DeadLetter.objects.filter(pk__in=[row.pk for row in rows]).update(state=LetterState.GIVEN_BACK)
    counts.recount(job.pk)
    return job


def report(archive: LaunchSetting, key: str, result: str) -> None:
    activation = Activation.objects.get_or_create(setting=archive)[0]
    run = Run.objects.get_or_create(activation=activation, server=reports.server(), epoch=1)[0]
    about = reports.message(
        key, queue="archive", destination="t.archive", replayed=True, dead_letter_queue="DLQ.orders",
        dead_letter_id=20,
    )  # fmt: skip
    content = reports.replay_outcome(
        reports.run_of(run), about, result, occurred_at=AT + timedelta(minutes=10)
    )
    accept_batch(run.server, Spool().batch(content), AT + timedelta(minutes=10))


def test_the_agent_of_the_target_says_what_became_of_each(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter]
) -> None:
    job = redirected(orders, archive, *three)
    report(archive, "ID:10", "handled")
    report(archive, "ID:11", "failed")
    again = letters.dead("archive", 300, "ID:11")
    items = job.items.order_by("letter_id")
    assert list(items.values_list("outcome", "died_as")) == [
        (Outcome.HANDLED, None), (Outcome.DEAD_AGAIN, again.pk), (Outcome.WAITING, None),
    ]  # fmt: skip
    job.refresh_from_db()
    assert (job.counts["handled"], job.counts["dead_again"]) == (1, 1)


def test_a_report_of_the_setting_that_it_left_is_none_of_the_target(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter]
) -> None:
    job = redirected(orders, archive, three[0])
    run = reports.run(orders, reports.server())
    about = reports.message("ID:10", replayed=True, dead_letter_queue="DLQ.orders", dead_letter_id=20)
    content = reports.replay_outcome(reports.run_of(run), about, "handled")
    accept_batch(run.server, Spool().batch(content), AT + timedelta(minutes=10))
    assert [item.outcome for item in job.items.all()] == [Outcome.WAITING]


def test_the_case_file_joins_both_sides_as_far_as_one_may_see_them(
    orders: LaunchSetting, archive: LaunchSetting, three: list[DeadLetter]
) -> None:
    redirected(orders, archive, *three)
    report(archive, "ID:11", "failed")
    again = letters.dead("archive", 300, "ID:11")
    assert again.chapter == 1
    words = "Redirected from orders to archive"
    here, there = f"/letters/{three[1].pk}/", f"/letters/{again.pk}/"
    both = reports.person("both", *READS)
    source, target = looked_at(both, here), looked_at(both, there)
    assert words in source.text and words in target.text
    assert "Dead-lettered to DLQ.archive" in source.text and there in source.links()
    assert "a secret reason" in target.text and here in target.links()
    assert target.text.index(words) < target.text.index("Dead-lettered to DLQ.archive")

    near = granted("near", demo=("see_letters",))
    source = looked_at(near, here)
    assert words in source.text and "Dead-lettered to DLQ.archive" not in source.text
    assert there not in source.links()
    far = granted("far", elsewhere=("see_letters",))
    target = looked_at(far, there)
    assert words in target.text and "a secret reason" not in target.text
    assert "secret-person" not in target.text and here not in target.links()

    for person, letter in ((near, three[1]), (far, again), (both, again)):
        case = rest(person).get(f"/api/v1/dead-letters/{letter.pk}/").json()["case"]
        (found,) = case["redirected"]
        assert (found["setting"], found["target"], found["state"]) == ("orders", "archive", "given_back")
        assert "secret" not in json.dumps(found)


def test_messages_without_a_key_have_no_case_elsewhere(
    orders: LaunchSetting, archive: LaunchSetting, mover: User
) -> None:
    row = letters.dead("orders", 40, "ID:40")
    DeadLetter.objects.filter(pk=row.pk).update(message_key="")
    other = letters.dead("archive", 41, "ID:41")
    DeadLetter.objects.filter(pk=other.pk).update(message_key="")
    redirected(orders, archive, row)
    assert "Redirected from" not in looked_at(mover, f"/letters/{other.pk}/").text
    assert rest(mover).get(f"/api/v1/dead-letters/{other.pk}/").json()["case"]["redirected"] == []
