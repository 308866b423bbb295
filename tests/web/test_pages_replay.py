"""The page of a replay: what became of its letters, how it goes about it, and what may be done about it by
whom."""

from datetime import time, timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from agents.models import LaunchSetting
from console.audit.models import AuditEntry
from dlq.models import ItemState, JobState, ReplayItem, ReplayJob, ReplaySlice
from dlq.pages.replay_progress import moved_over_time
from dlq.reasons import FAILING
from dlq.replay import text as replay_text
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in

KEY = "orders-export"


@pytest.fixture
def job(world: World) -> ReplayJob:
    setting = LaunchSetting.objects.get(key=KEY)
    return ReplayJob.objects.create(
        id=uuid4(), setting=setting, setting_key=KEY, scope="all", state=JobState.RUNNING, total=1000,
        by=world.people["chief"], planned_at=timezone.now(),
        counts={"given_back": 812, "planned": 188, "handled": 640, "failed_again": 12, "dead_again": 0},
        skipped={"muted": 3, "gone": 1},
    )  # fmt: skip


def test_it_shows_outcomes_from_the_counts_that_are_kept_with_it(world: World, job: ReplayJob) -> None:
    text = looked_at(signed_in(world, "viewer"), f"/replays/{job.pk}/").text

    for words in ("replayed 812", "processed 640", "failed again, will be retried 12",
        "waiting for processing 160",
                  "not moved yet 188", "3 the error is marked as known"):  # fmt: skip
        assert words in text, words


@pytest.mark.parametrize(
    ("action", "english", "russian"),
    [("give_back", "Replay", "Возврат"), ("redirect", "Redirect", "Перенаправление"),
     ("discard", "Discard", "Отбрасывание"), ("put_back", "Restore from trash", "Восстановление из корзины"),
     ("edit", "Edit and replay", "Исправление и возврат")],
)  # fmt: skip
def test_its_title_says_what_is_done(
    world: World, job: ReplayJob, action: str, english: str, russian: str
) -> None:
    ReplayJob.objects.filter(pk=job.pk).update(action=action, query="exception=KeyError", scope="matching")
    client, begin = signed_in(world, "chief"), str(job.pk)[:8]
    page = looked_at(client, f"/replays/{job.pk}/")
    assert f"{english} {begin} running" in page.text and "Filter exception=KeyError" in page.text
    assert f"Cancel: {english} {begin}?" in looked_at(client, f"/replays/{job.pk}/cancel/").text
    client.cookies["django_language"] = "ru"
    text = looked_at(client, f"/replays/{job.pk}/").text
    assert f"{russian} {begin}" in text and "Фильтр exception=KeyError" in text and "Отобрать" not in text


def test_it_tells_the_pace_and_what_is_left(world: World, job: ReplayJob) -> None:
    now = timezone.now()
    for number in (1, 2):
        at = now - timedelta(seconds=20 - 10 * number)
        ReplaySlice.objects.create(
            job=job, number=number, first_letter_id=1, last_letter_id=2, size=94, state="checked",
            planned_at=at - timedelta(seconds=10), checked_at=at,
        )  # fmt: skip
    text = looked_at(signed_in(world, "viewer"), f"/replays/{job.pk}/").text

    assert "9.4 per second · about 20 s left" in text


def test_a_slow_pace_is_told_as_it_is(world: World, job: ReplayJob) -> None:
    at = timezone.now() - timedelta(seconds=1)
    ReplayJob.objects.filter(pk=job.pk).update(per_second=0.5)
    ReplaySlice.objects.create(
        job=job,
        number=1,
        first_letter_id=1,
        last_letter_id=1,
        size=1,
        state="checked",
        planned_at=at,
        checked_at=at,
    )
    text = looked_at(signed_in(world, "viewer"), f"/replays/{job.pk}/").text

    assert " 0.5 per second · about 6 min 16 s left" in text.replace("\N{NO-BREAK SPACE}", " ")


def test_a_paused_job_waits_for_nothing_but_a_person(world: World, job: ReplayJob) -> None:
    ReplayJob.objects.filter(pk=job.pk).update(
        state=JobState.PAUSED, paused_at=timezone.now(), wait_reason="rate"
    )
    text = looked_at(signed_in(world, "viewer"), f"/replays/{job.pk}/").text

    assert "Paused" in text and "It waits for its next letters" not in text


def test_who_does_not_want_to_cancel_it_goes_back(world: World, job: ReplayJob) -> None:
    client = signed_in(world, "chief")
    found = looked_at(client, f"/replays/{job.pk}/cancel/")
    assert "Cancel the job Go back" in found.text and f"/replays/{job.pk}/" in found.links()
    ReplayJob.objects.filter(pk=job.pk).update(state=JobState.AWAITING, by=None)
    assert "Go back" not in looked_at(client, f"/replays/{job.pk}/refuse/").text


@pytest.mark.parametrize("action", ["give_back", "discard", "put_back"])
def test_it_leads_to_the_letters_of_its_setting(world: World, job: ReplayJob, action: str) -> None:
    ReplayJob.objects.filter(pk=job.pk).update(action=action)
    found = looked_at(signed_in(world, "viewer"), f"/replays/{job.pk}/").found
    buttons = [attrs["href"] for tag, attrs in found if tag == "a" and attrs.get("class") == "btn"]

    assert f"/dead-letters/{KEY}/" in buttons


def test_it_tells_how_it_goes_and_why_it_waits(world: World, job: ReplayJob) -> None:
    ReplayJob.objects.filter(pk=job.pk).update(
        per_second=2.5, ladder=True, ladder_step=2, window_from=time(22), window_until=time(6),
        wait_reason="outcomes",
        acknowledged=["same_version"],
    )  # fmt: skip
    text = looked_at(signed_in(world, "viewer"), f"/replays/{job.pk}/").text

    for words in (
        "2.5 per second",
        "from 22:00 to 06:00",
        "step 3: 25 messages",
        "Stops automatically when more than 10% of the messages in a step fail again.",
        "The job is waiting for the outcomes of this step.",
        "the agent version had not changed since the failure",
    ):
        assert words in text, words


def test_a_letter_that_was_left_out_says_why(world: World, job: ReplayJob) -> None:
    ReplayItem.objects.create(job=job, letter=world.letters[0], state=ItemState.SKIPPED, why="muted")
    page = looked_at(signed_in(world, "viewer"), f"/replays/{job.pk}/?show=skipped")

    assert "skipped" in page.text and page.text.count("the error is marked as known") == 2
    assert f"/replays/{job.pk}/?show=skipped&why=gone" in page.links()
    assert (
        "No messages in this state."
        in looked_at(signed_in(world, "viewer"), f"/replays/{job.pk}/?show=skipped&why=gone").text
    )
    assert (
        "No messages in this state."
        in looked_at(signed_in(world, "viewer"), f"/replays/{job.pk}/?show=cancelled").text
    )


def test_it_refreshes_until_nothing_more_can_happen(world: World, job: ReplayJob) -> None:
    client, path = signed_in(world, "viewer"), f"/replays/{job.pk}/"

    def polls() -> bool:
        found = looked_at(client, path).found
        return any(each.get("id") == "live" and "hx-get" in each for _tag, each in found)

    assert polls()
    ReplayJob.objects.filter(pk=job.pk).update(state=JobState.DONE)
    assert polls()  # 160 are waiting to be handled
    ReplayJob.objects.filter(pk=job.pk).update(counts={"given_back": 1000, "handled": 1000})
    assert not polls()
    ReplayJob.objects.filter(pk=job.pk).update(action="discard", counts={"given_back": 1000})
    assert not polls() and "handled" not in looked_at(client, path).text


def test_it_is_paused_resumed_and_cancelled_from_its_page(world: World, job: ReplayJob) -> None:
    client, path = signed_in(world, "operator"), f"/replays/{job.pk}/"
    client.post(f"{path}pause/")
    job.refresh_from_db()
    assert (job.state, job.paused_by) == (JobState.PAUSED, world.people["operator"])
    assert "Paused" in looked_at(client, path).text

    client.post(f"{path}resume/")
    job.refresh_from_db()
    assert job.state == JobState.PLANNED
    assert f"Cancel: Replay {str(job.pk)[:8]}?" in looked_at(client, f"{path}cancel/").text
    job.refresh_from_db()
    assert job.state == JobState.PLANNED
    client.post(f"{path}cancel/", {"reason": "wrong filter"})
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert AuditEntry.objects.get(action="replay.cancel").reason == "wrong filter"
    answer = client.post(f"{path}pause/", follow=True)
    assert "Not possible: the state of the job is “cancelled”." in answer.content.decode()


def test_a_person_lets_it_go_on_beside_open_consumers(world: World, job: ReplayJob) -> None:
    why = {"code": "consumers_open", "consumers": 1, "servers": ["srv-1"]}
    paused = ReplayJob.objects.filter(pk=job.pk)
    paused.update(state=JobState.PAUSED, paused_at=timezone.now(), pause_reason=why)
    client, path = signed_in(world, "operator"), f"/replays/{job.pk}/"
    page = looked_at(client, path)
    assert "Resume Resume despite open consumers Cancel…" in page.text
    sent = [attrs for tag, attrs in page.found if tag == "input" and attrs.get("name") == "acknowledge"]
    assert [each["value"] for each in sent] == ["stopping"]

    client.post(f"{path}resume/", {"acknowledge": "consumers"})
    assert paused.get().state == JobState.PAUSED, "it knows no such word"
    client.post(f"{path}resume/", {"acknowledge": "stopping"})
    job = paused.get()
    assert (job.state, job.goes_on_all_the_same, job.pause_reason) == (JobState.PLANNED, True, {})
    assert AuditEntry.objects.get().detail["acknowledged"] == ["stopping"]


def test_only_another_person_with_the_permission_approves(world: World, job: ReplayJob) -> None:
    ReplayJob.objects.filter(pk=job.pk).update(state=JobState.AWAITING, by=world.people["operator"])
    path = f"/replays/{job.pk}/"

    for name in ("viewer", "outsider", "operator"):
        for act in ("approve", "refuse"):
            assert signed_in(world, name).post(f"{path}{act}/", {"reason": "no"}).status_code == 403, (
                name,
                act,
            )
    job.refresh_from_db()
    assert job.state == JobState.AWAITING
    client = signed_in(world, "chief")
    assert "Requested by operator. Action: replay." in looked_at(client, f"{path}approve/").text
    client.post(f"{path}approve/")
    job.refresh_from_db()
    assert (job.state, job.approved_by) == (JobState.PLANNED, world.people["chief"])


@pytest.mark.parametrize("name", ["viewer", "outsider"])
@pytest.mark.parametrize("act", ["pause", "resume", "cancel"])
def test_who_may_not_give_back_does_nothing_to_it(world: World, job: ReplayJob, name: str, act: str) -> None:
    client = signed_in(world, name)

    assert client.post(f"/replays/{job.pk}/{act}/").status_code == 403
    assert client.get(f"/replays/{job.pk}/").status_code == (200 if name == "viewer" else 403)
    job.refresh_from_db()
    assert job.state == JobState.RUNNING
    assert AuditEntry.objects.filter(result="refused", by=world.people[name]).count() == 1


def test_the_list_is_filtered(world: World, job: ReplayJob) -> None:
    client = signed_in(world, "viewer")
    ReplayJob.objects.filter(pk=job.pk).update(action="discard", state=JobState.PAUSED)

    def shown(query: str) -> int:
        links = looked_at(client, f"/replays/?{query}").links()
        return len({each for each in links if each.startswith("/replays/") and len(each) == 46})

    assert [shown(query) for query in ("", "action=discard", "state=unfinished", "by=chief",
        "setting=nothing")] == [
        2, 1, 2, 1, 0,
    ]  # fmt: skip


def test_each_step_of_a_ladder_shows_its_outcomes(world: World, job: ReplayJob) -> None:
    ReplayJob.objects.filter(pk=job.pk).update(
        ladder=True, ladder_step=1, state=JobState.STOPPED, problem=FAILING(),
        counts={"given_back": 3, "planned": 0, "cancelled": 997, "handled": 1, "dead_again": 1},
    )  # fmt: skip
    outcomes = iter(["handled", "dead_again", ""])
    letters = iter(world.letters[20:])
    for step, size in ((0, 1), (1, 2)):
        piece = ReplaySlice.objects.create(
            job=job, number=step + 1, first_letter_id=1, last_letter_id=2, size=size, step=step
        )
        for _one in range(size):
            ReplayItem.objects.create(
                job=job, letter=next(letters), slice=piece, state=ItemState.GIVEN_BACK, outcome=next(outcomes)
            )
    text = looked_at(signed_in(world, "viewer"), f"/replays/{job.pk}/").text

    assert "1 1 1 0 0 0 passed 2 2 0 0 1 1 stopped 50% failed" in text
    assert "Stopped automatically: too many messages in a step failed again." in text


def test_what_is_left_is_known_while_letters_are_still_written_down(world: World, job: ReplayJob) -> None:
    counts = {"given_back": 100, "planned": 50, "skipped": 10}
    job.planned_at = None
    assert replay_text.to_move(job, counts) == 890
    job.planned_at = timezone.now()
    assert replay_text.to_move(job, counts) == 50


# -- how far it came, over time ------------------------------------------------------------------------------


def test_its_progress_is_a_curve_of_what_had_left(world: World, job: ReplayJob) -> None:
    client, now = signed_in(world, "viewer"), timezone.now().replace(microsecond=0)
    assert "Progress over time" not in looked_at(client, f"/replays/{job.pk}/").text
    for number, (seconds, left) in enumerate(((9, 100), (7, 50), (7, 0), (4, None))):
        at = now - timedelta(seconds=seconds)
        ReplaySlice.objects.create(
            job=job, number=number, first_letter_id=1, last_letter_id=2, size=100, state="checked", moved=90,
            left=left, planned_at=at, checked_at=at,
        )  # fmt: skip
    page = looked_at(client, f"/replays/{job.pk}/")
    assert "Progress over time" in page.text and "last 240, highest 240" in page.text
    rows = [text for text in page.text.split("Values as a table")[1].split() if text.isdecimal()]
    assert [text for text in rows if text in ("100", "150", "240")] == [
        "100",
        "100",
        "150",
        "150",
        "150",
        "240",
    ]


def test_its_curve_is_drawn_when_it_is_asked_for_alone(world: World, job: ReplayJob) -> None:
    at = timezone.now()
    ReplaySlice.objects.create(
        job=job, number=0, first_letter_id=1, last_letter_id=2, size=9, state="checked", left=9, checked_at=at
    )
    client = signed_in(world, "viewer")

    def html(target: str) -> str:
        return client.get(f"/replays/{job.pk}/", headers={"hx-target": target}).content.decode()

    assert "<figure" not in html("live") and 'id="progress-over-time" hx-preserve="true"' in html("live")
    assert "<figure" in html("progress-over-time")


@pytest.mark.parametrize(("days", "points"), [(0, 1), (0.1, 145), (6, 145), (300, 301), (2100, 301)])
def test_its_curve_has_few_points_however_long_it_takes(
    world: World, job: ReplayJob, days: float, points: int
) -> None:
    at = timezone.now().replace(hour=1, minute=0, second=0, microsecond=0)
    for number, instant in enumerate((at, at + timedelta(days=days))):
        ReplaySlice.objects.create(
            job=job, number=number, first_letter_id=1, last_letter_id=2, size=9, state="checked", left=9,
            checked_at=instant,
        )  # fmt: skip
    drawn = moved_over_time(job)
    assert drawn.count('<th scope="row">') == points
