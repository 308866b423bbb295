"""Replays over REST: what would happen, giving back, and what is done to a job that is there."""

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as settings_of_site
from django.contrib.auth.models import Group, User
from rest_framework.test import APIClient

from agents.models import LaunchSetting, Pool, PoolGrant
from console.audit.models import AuditEntry
from console.operations.refusals import Refused
from dlq.models import DeadLetter, ReplayItem, ReplayJob
from dlq.replay.preflight.rules import CODES
from dlq.replay.requests import LARGEST_SELECTION
from failures.intake.batch import accept_batch
from tests.dlq.jobs import begun
from tests.web import letters, reports
from tests.web.reports import AT, Spool, without_id
from tests.web.test_failures_intake_at_once import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sent")]
REPLAYS, PREFLIGHT = "/api/v1/replays/", "/api/v1/preflight/"
READS = ("dlq.view_deadletter", "dlq.view_replayjob")


@pytest.fixture
def orders() -> LaunchSetting:
    return reports.setting()


@pytest.fixture
def three(orders: LaunchSetting) -> list[DeadLetter]:
    return [letters.dead("orders", number, f"ID:{number}") for number in (10, 11, 12)]


def client(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(user)["Authorization"])
    return client


@pytest.fixture
def viewer() -> APIClient:
    return client(reports.person("viewer", *READS))


@pytest.fixture
def operator() -> APIClient:
    return client(reports.person("operator", *READS, "dlq.give_back"))


@pytest.fixture
def chief() -> APIClient:
    rights = ("give_back", "discard", "redirect", "approve")
    return client(reports.person("chief", *READS, *(f"dlq.{right}" for right in rights)))


def asked(**more: Any) -> dict[str, Any]:
    """A question in which every warning is acknowledged."""
    return {"setting": "orders", "acknowledge": list(CODES), **more}


def refused() -> list[tuple[str, str]]:
    return list(AuditEntry.objects.filter(result="refused").order_by("pk").values_list("action", "by_name"))


# -- what would happen ---------------------------------------------------------------------------------------


def test_a_preflight_tells_what_goes_what_stays_and_what_to_think_of(
    operator: APIClient, three: list[DeadLetter]
) -> None:
    DeadLetter.objects.filter(pk=three[1].pk).update(state="gone")
    told = operator.post(PREFLIGHT, {"setting": "orders", "letters": [row.pk for row in three]}).json()
    assert (told["going"], told["total"], told["seen"], told["about"]) == (2, 3, 3, False)
    assert (told["skipped"], told["examples"]) == ({"gone": 1}, {"gone": [three[1].pk]})
    assert told["reasons"] == {"gone": "no longer in the queue"}
    texts = {each["code"]: each["text"] for each in told["warnings"]}
    assert texts.keys() == {"no_consumer"}, "no order is kept by a setting that is not ordered"
    assert (
        "The subscription has no consumers now: no online server is running the setting."
        in texts["no_consumer"]
    )
    LaunchSetting.objects.filter(key="orders").update(ordered=True)
    told = operator.post(PREFLIGHT, {"setting": "orders", "letters": [row.pk for row in three]}).json()
    assert (
        "The messages of this job will be processed out of order"
        in {each["code"]: each["text"] for each in told["warnings"]}["ordered"]
    )
    assert not ReplayJob.objects.exists() and not AuditEntry.objects.exists()


def test_nothing_begins_before_its_warnings_are_named(operator: APIClient, three: list[DeadLetter]) -> None:
    LaunchSetting.objects.filter(key="orders").update(ordered=True)
    ask = {"setting": "orders", "letters": [three[0].pk]}
    answer = operator.post(REPLAYS, ask)
    assert (answer.status_code, answer.json()["error"]) == (409, "unacknowledged")
    codes = answer.json()["warnings"]
    assert codes == ["no_consumer", "ordered"]
    assert operator.post(REPLAYS, ask | {"acknowledge": codes[:1]}).json()["warnings"] == codes[1:]
    assert refused() == [("dead_letters.replay", "operator")] * 2
    assert operator.post(REPLAYS, ask | {"acknowledge": codes}).json()["acknowledged"] == codes


@pytest.mark.parametrize("action", ["redirect", "discard", "put_back"])
def test_a_preflight_needs_the_right_of_its_action(
    operator: APIClient, three: list[DeadLetter], action: str
) -> None:
    target = {"target": reports.setting("archive").key} if action == "redirect" else {}
    ask = {"setting": "orders", "letters": [three[0].pk], "action": action, **target}
    assert operator.post(PREFLIGHT, ask).status_code == 403


# -- giving back ---------------------------------------------------------------------------------------------


def test_an_operator_gives_chosen_letters_back(
    operator: APIClient, three: list[DeadLetter], sent: list[str], django_capture_on_commit_callbacks: Any
) -> None:
    ask = asked(letters=[three[0].pk, three[2].pk], reason="mended in 1.4")
    with django_capture_on_commit_callbacks(execute=True):
        answer = operator.post(REPLAYS, ask)
    job = answer.json()
    assert (answer.status_code, job["state"], job["scope"], job["total"]) == (201, "planned", "selection", 2)
    assert (job["by"], job["reason"], job["setting"]) == ("operator", "mended in 1.4", "orders")
    assert sent == [job["id"]]
    shown = operator.get(f"{REPLAYS}{job['id']}/").json()
    assert shown["letters"]["planned"] == 2 and sum(shown["letters"].values()) == 2
    assert shown["outcomes"] == {"waiting": 0, "handled": 0, "failed_again": 0, "dead_again": 0, "unknown": 0}
    assert AuditEntry.objects.get().reason == "mended in 1.4"


def test_all_of_a_setting_is_frozen_at_the_question(operator: APIClient, three: list[DeadLetter]) -> None:
    job = operator.post(REPLAYS, asked(all=True)).json()
    letters.dead("orders", 50, "ID:50")
    stored = ReplayJob.objects.get()
    assert (job["scope"], job["total"], stored.letters_up_to) == ("all", 3, three[-1].pk)
    again = operator.post(REPLAYS, asked(all=True))
    assert (again.status_code, again.json()["error"], again.json()["replay"]) == (
        409,
        "already_running",
        job["id"],
    )


@pytest.mark.parametrize(
    ("more", "scope"), [({}, "matching"), ({"group": True}, "group")]
)  # fmt: skip
def test_what_a_filter_finds_is_asked_for_by_its_address(
    operator: APIClient, three: list[DeadLetter], more: dict[str, Any], scope: str
) -> None:
    DeadLetter.objects.filter(pk=three[0].pk).update(exception_type="KeyError")
    job = operator.post(REPLAYS, asked(query="exception=KeyError", **more)).json()
    assert (job["scope"], job["query"], job["total"]) == (scope, "exception=KeyError", 1)
    wrong = operator.post(REPLAYS, asked(query="span=9y"))
    assert (wrong.status_code, wrong.json()["error"]) == (400, "bad_filter")


def test_how_it_goes_about_it_is_kept_with_the_job(operator: APIClient, three: list[DeadLetter]) -> None:
    how = {
        "per_second": 2.5,
        "window_from": "22:00",
        "window_until": "06:00",
        "ladder": True,
        "ladder_percent": 20,
    }
    job = operator.post(REPLAYS, asked(all=True, **how)).json()
    assert {name: job[name] for name in ("per_second", "ladder", "ladder_percent")} == {
        "per_second": 2.5, "ladder": True, "ladder_percent": 20,
    }  # fmt: skip
    assert (job["window_from"], job["window_until"]) == ("22:00:00", "06:00:00")
    half = operator.post(REPLAYS, asked(all=True, window_from="22:00"))
    assert (half.status_code, half.json()["error"]) == (400, "bad_options")


def test_letters_are_redirected_within_their_destination(
    chief: APIClient, orders: LaunchSetting, three: list[DeadLetter]
) -> None:
    reports.setting("archive", destination=orders.destination)
    reports.setting("elsewhere")
    ids = {"letters": [three[0].pk], "action": "redirect"}
    job = chief.post(REPLAYS, asked(target="archive", **ids)).json()
    assert (job["source_queue"], job["target_queue"], job["target"]) == ("DLQ.orders", "archive", "archive")
    other = chief.post(REPLAYS, asked(**(ids | {"letters": [three[1].pk]}), target="elsewhere"))
    assert (other.status_code, other.json()["error"]) == (403, "permission_denied")
    assert chief.post(REPLAYS, asked(**ids)).status_code == 400
    assert chief.post(REPLAYS, asked(letters=[three[1].pk], target="archive")).status_code == 400


@pytest.mark.parametrize("target", ["elsewhere", "orders"])
def test_a_preflight_refuses_the_target_that_the_job_would_refuse(
    chief: APIClient, orders: LaunchSetting, three: list[DeadLetter], target: str
) -> None:
    reports.setting("elsewhere")
    ask = asked(letters=[three[0].pk], action="redirect", target=target)
    job, ahead = chief.post(REPLAYS, ask), chief.post(PREFLIGHT, ask)
    assert (ahead.status_code, without_id(ahead)) == (job.status_code, without_id(job))
    assert ahead.json()["error"] in ("permission_denied", "no_target")


def test_a_preflight_refuses_letters_of_another_setting_as_the_job_does(
    operator: APIClient, three: list[DeadLetter]
) -> None:
    ask = asked(letters=[three[0].pk, letters.dead("invoices", 10, "ID:x").pk])
    job, ahead = operator.post(REPLAYS, ask), operator.post(PREFLIGHT, ask)
    assert (ahead.status_code, without_id(ahead)) == (job.status_code, without_id(job))
    assert ahead.json()["error"] == "not_of_setting"


def test_letters_are_discarded_with_a_reason(chief: APIClient, three: list[DeadLetter]) -> None:
    ids = {"letters": [three[0].pk], "action": "discard"}
    without = chief.post(REPLAYS, asked(**ids))
    assert (without.status_code, without.json()["error"]) == (400, "reason_needed")
    job = chief.post(REPLAYS, asked(**ids, reason="test data")).json()
    assert (job["target_queue"], job["action"]) == ("DLQ.bin", "discard")


def test_a_job_tells_its_outcomes_and_its_letters(
    viewer: APIClient, orders: LaunchSetting, three: list[DeadLetter]
) -> None:
    job = letters.given_back(orders, *three)
    run = reports.run(orders, reports.server())
    about = reports.message("ID:10", replayed=True, dead_letter_queue="DLQ.orders", dead_letter_id=15)
    accept_batch(run.server, Spool().batch(reports.replay_outcome(reports.run_of(run), about)), AT)
    listed = viewer.get(f"{REPLAYS}?setting=orders").json()["results"]
    assert [row["id"] for row in listed] == [str(job.pk)]
    assert listed[0]["outcomes"] == {
        "waiting": 2,
        "handled": 1,
        "failed_again": 0,
        "dead_again": 0,
        "unknown": 0,
    }
    assert viewer.get(f"{REPLAYS}?setting=other").json()["results"] == []
    items = viewer.get(f"{REPLAYS}{job.pk}/letters/").json()["results"]
    assert [(row["letter"], row["state"], row["outcome"]) for row in items] == [
        (three[0].pk, "given_back", "handled"), (three[1].pk, "given_back", ""), (three[2].pk, "given_back",
        ""),
    ]  # fmt: skip


@pytest.mark.parametrize("state", ["given_back", "gone"])
def test_what_is_not_dead_is_left_out_or_refused(
    operator: APIClient, three: list[DeadLetter], state: str
) -> None:
    DeadLetter.objects.filter(pk=three[1].pk).update(state=state)
    answer = operator.post(REPLAYS, asked(letters=[three[1].pk]))
    assert (answer.status_code, answer.json()["error"]) == (409, "outstanding")
    assert answer.json()["letters"] == [three[1].pk]
    assert not ReplayJob.objects.exists() and not ReplayItem.objects.exists()
    job = operator.post(REPLAYS, asked(letters=[row.pk for row in three])).json()
    assert (job["total"], job["skipped"]) == (2, {"gone": 1})


def test_letters_of_another_setting_are_refused(operator: APIClient, three: list[DeadLetter]) -> None:
    other = letters.dead("invoices", 10, "ID:x")
    answer = operator.post(REPLAYS, {"setting": "orders", "letters": [three[0].pk, other.pk, 10**15]})
    assert (answer.status_code, answer.json()["error"]) == (409, "not_of_setting")
    assert answer.json()["letters"] == [other.pk, 10**15]


def test_nothing_to_give_back_is_409(operator: APIClient, orders: LaunchSetting) -> None:
    answer = operator.post(REPLAYS, {"setting": "orders", "all": True})
    assert (answer.status_code, answer.json()["error"]) == (409, "nothing_to_give_back")


@pytest.mark.parametrize(
    "ask",
    [{}, {"setting": "orders"}, {"setting": "orders", "all": False}, {"setting": "orders", "letters": ["x"]},
     {"setting": "orders", "letters": [1], "all": True}, {"setting": "orders", "letters": [0]}, [],
     {"setting": "orders", "letters": [1], "query": ""}, {"setting": "orders", "letters": []},
     {"setting": "orders", "query": ""}, {"setting": "orders", "query": "message_key="},
     {"setting": "orders", "query": "exception=%20"}, {"setting": "orders", "query": "span=1d&prop="},
     {"setting": "orders", "query": "exception=KeyError&exception=ValueError"},
     {"setting": "orders", "all": True, "action": "edit"}, {"setting": "orders", "all": True,
     "acknowledge": ["x"]},
     {"setting": "orders", "all": True, "per_second": -1}, {"setting": "orders", "all": True,
     "per_second": "nan"},
     {"setting": "orders", "letters": list(range(1, LARGEST_SELECTION + 2))}, {"setting": "o\0",
     "all": True}],
)  # fmt: skip
@pytest.mark.parametrize("url", [REPLAYS, PREFLIGHT])
def test_a_question_that_means_nothing_is_400(
    operator: APIClient, orders: LaunchSetting, url: str, ask: Any
) -> None:
    assert operator.post(url, ask).status_code == 400
    assert not AuditEntry.objects.exists()


def test_an_unknown_setting_is_404(operator: APIClient) -> None:
    for url in (REPLAYS, PREFLIGHT):
        assert operator.post(url, {"setting": "nowhere", "all": True}).status_code == 404


@pytest.mark.django_db(transaction=True)
def test_two_operators_at_once_give_a_letter_back_once() -> None:
    orders = reports.setting()
    row = letters.dead("orders", 10, "ID:1")
    operator = reports.person("operator")

    def ask() -> str:
        try:
            how: dict[str, Any] = {"letters": [row.pk], "by": operator, "now": AT}
            begun(orders, action="give_back", scope="one", **how)
        except Refused as refused:
            return refused.code
        return "begun"

    assert sorted(at_once(*[ask] * 4)) == ["begun", "outstanding", "outstanding", "outstanding"]
    assert ReplayItem.objects.count() == ReplayJob.objects.count() == 1


# -- a job that is there -------------------------------------------------------------------------------------


def test_a_job_is_paused_resumed_and_cancelled(operator: APIClient, three: list[DeadLetter]) -> None:
    url = f"{REPLAYS}{operator.post(REPLAYS, asked(all=True)).json()['id']}/"
    paused = operator.post(f"{url}pause/").json()
    assert (paused["state"], paused["paused_by"]) == ("paused", "operator")
    again = operator.post(f"{url}pause/")
    assert (again.status_code, again.json()["error"], again.json()["state"]) == (409, "other_state", "paused")
    assert again.json()["what_to_do"] == "Read the job again: its state says what is possible."
    assert operator.post(f"{url}resume/").json()["state"] == "planned"
    assert operator.post(f"{url}cancel/", {"reason": "wrong filter"}).json()["state"] == "cancelled"
    kept = (
        AuditEntry.objects.exclude(action="dead_letters.replay")
        .order_by("pk")
        .values_list("action", "result", "reason")
    )
    assert list(kept) == [
        ("replay.pause", "done", ""), ("replay.pause", "refused", ""), ("replay.resume", "done", ""),
        ("replay.cancel", "done", "wrong filter"),
    ]  # fmt: skip


def test_above_the_limit_of_the_site_another_person_decides(
    chief: APIClient, operator: APIClient, three: list[DeadLetter], settings: Any, sent: list[str]
) -> None:
    settings.MA_SECOND_PERSON_ABOVE = 2
    job = chief.post(REPLAYS, asked(all=True)).json()
    assert (job["state"], job["needs_second"], sent) == ("awaiting", True, [])
    url = f"{REPLAYS}{job['id']}/"
    own = chief.post(f"{url}approve/")
    assert (own.status_code, own.json()["error"]) == (409, "own_request")
    assert operator.post(f"{url}approve/").status_code == 403
    second = client(reports.person("second", *READS, "dlq.approve"))
    approved = second.post(f"{url}approve/").json()
    assert (approved["state"], approved["approved_by"]) == ("planned", "second")
    assert second.post(f"{url}refuse/").status_code == 409
    assert refused() == [
        ("replay.approve", "chief"),
        ("replay.approve", "operator"),
        ("replay.refuse", "second"),
    ]


def test_the_second_person_may_refuse(chief: APIClient, three: list[DeadLetter], settings: Any) -> None:
    settings.MA_SECOND_PERSON_ABOVE = 2
    url = f"{REPLAYS}{chief.post(REPLAYS, asked(all=True)).json()['id']}/"
    assert chief.post(f"{url}refuse/").json()["error"] == "own_request"
    second = client(reports.person("second", *READS, "dlq.approve"))
    told = second.post(f"{url}refuse/", {"reason": "ask again on Monday"}).json()
    assert (told["state"], told["problem"]) == ("cancelled", "rejected by second")
    assert AuditEntry.objects.get(action="replay.refuse", result="done").reason == "ask again on Monday"


@pytest.mark.parametrize("what", ["pause", "resume", "cancel", "approve", "refuse"])
def test_who_may_not_begin_it_does_nothing_to_it(
    operator: APIClient, three: list[DeadLetter], what: str
) -> None:
    url = f"{REPLAYS}{operator.post(REPLAYS, asked(all=True)).json()['id']}/"
    answer = client(reports.person("viewer", *READS)).post(f"{url}{what}/")
    assert (answer.status_code, answer.json()["error"]) == (403, "permission_denied")
    assert client(reports.person("outsider")).post(f"{url}{what}/").status_code == 403
    assert APIClient().post(f"{url}{what}/").status_code == 401
    assert ReplayJob.objects.get().state == "planned"
    assert refused()[0] == (f"replay.{what}", "viewer") and refused()[1][1] == "outsider"


@pytest.mark.parametrize("what", ["pause", "approve"])
def test_no_such_job_is_404(operator: APIClient, what: str) -> None:
    assert operator.post(f"{REPLAYS}5b0c2f8e-0000-4000-8000-000000000000/{what}/").status_code == 404


# -- who may -------------------------------------------------------------------------------------------------


def test_who_may_look_and_who_may_give_back(
    operator: APIClient, viewer: APIClient, three: list[DeadLetter]
) -> None:
    outsider = client(reports.person("outsider"))
    ask = asked(letters=[three[0].pk])
    assert [who.get(REPLAYS).status_code for who in (viewer, operator, outsider, APIClient())] == [
        200,
        200,
        403,
        401,
    ]
    assert [who.post(REPLAYS, ask).status_code for who in (outsider, viewer, APIClient())] == [403, 403, 401]
    assert not ReplayJob.objects.exists()
    assert refused() == [("dead_letters.replay", "outsider"), ("dead_letters.replay", "viewer")]
    assert operator.post(REPLAYS, ask).status_code == 201


def test_a_right_in_a_pool_is_for_the_settings_of_that_pool(
    orders: LaunchSetting, three: list[DeadLetter]
) -> None:
    other = reports.setting("invoices", pool=Pool.objects.create(name="other"))
    theirs = letters.dead("invoices", 20, "ID:20")
    team = Group.objects.create(name="team")
    PoolGrant.objects.create(pool=orders.pool, group=team, may_see_letters=True, may_give_back=True)
    person = reports.person("mate")
    person.groups.add(team)
    mate = client(person)
    job = mate.post(REPLAYS, asked(letters=[three[0].pk])).json()
    foreign = letters.given_back(other, theirs)
    assert mate.post(REPLAYS, {"setting": "invoices", "all": True}).status_code == 403
    assert mate.post(PREFLIGHT, {"setting": "invoices", "all": True}).status_code == 403
    assert [row["id"] for row in mate.get(REPLAYS).json()["results"]] == [job["id"]]
    pages = [f"{REPLAYS}{foreign.pk}/", f"{REPLAYS}{foreign.pk}/letters/"]
    assert [mate.get(page).status_code for page in pages] == [404, 404]
    assert mate.post(f"{REPLAYS}{foreign.pk}/cancel/").status_code == 404
    assert refused() == [("dead_letters.replay", "mate"), ("replay.cancel", "mate")]
    assert mate.post(f"{REPLAYS}{job['id']}/pause/").json()["state"] == "paused"


def test_letters_are_redirected_only_into_a_pool_in_which_one_may(
    orders: LaunchSetting, three: list[DeadLetter]
) -> None:
    archive = reports.setting("archive")
    elsewhere = Pool.objects.create(name="elsewhere")
    LaunchSetting.objects.filter(pk=archive.pk).update(pool=elsewhere, destination=orders.destination)
    person, team = reports.person("mover"), Group.objects.create(name="movers")
    person.groups.add(team)
    PoolGrant.objects.create(pool=orders.pool, group=team, may_see_letters=True, may_redirect=True)
    ask = asked(letters=[three[0].pk], action="redirect", target="archive")

    assert client(person).post(REPLAYS, ask).status_code == 403
    assert refused() == [("dead_letters.redirect", "mover")] and not ReplayJob.objects.exists()

    PoolGrant.objects.create(pool=elsewhere, group=team, may_redirect=True)
    assert client(person).post(REPLAYS, ask).status_code == 201


def test_each_warning_is_explained_in_the_documentation_of_the_rest_interface() -> None:
    told = Path(settings_of_site.BASE_DIR, "docs", "reference", "rest.md").read_text("utf-8")
    assert [code for code in CODES if f"| `{code}` |" not in told] == []


def test_a_misspelt_filter_of_the_list_is_refused(operator: APIClient) -> None:
    assert operator.get(REPLAYS, {"state": "done", "page_size": "5"}).status_code == 200
    assert operator.get(REPLAYS, {"sate": "done"}).status_code == 400
