"""What panels and pages show is told over REST: the breaker, another threshold, the difference of two
activations, retention, the thresholds of alerts, health; with the same rights."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from agents.models import Activation, ActivationState, BreakerTrip, LaunchSetting, Pool, Server
from alerts.models import AlertRule
from alerts.sources import every_kind
from failures.api import breaker as breaker_api
from failures.api import difference as difference_api
from failures.error_groups.increments import note
from failures.models import FailureProtocol
from failures.pages import what_if as what_if_pages
from ma_site.pages import health
from ma_site.pages.parts import DOWN, OK, Part
from retention.models import RetentionFigure, RetentionRun, RetentionState
from tests.web.factories import World
from tests.web.launches import TRIPPED
from tests.web.pages import looked_at, signed_in
from tests.web.rows import api_client, make_person
from tests.web.test_pages_breaker import fail

KEY = "orders-export"


def told(world: World, path: str, who: str = "viewer", code: int = 200) -> Any:
    answer = api_client(world.people[who]).get(f"/api/v1/{path}")
    assert answer.status_code == code, answer.content
    return answer.json()


# -- the breaker ---------------------------------------------------------------------------------------------


def test_the_breaker_tells_counts_and_which_failures_count(world: World) -> None:
    FailureProtocol.objects.all().delete()
    fail(world, "mail-send", "srv-1", "KeyError", "ok", "OSError", "TemporaryUnavailable", "OSError")
    found = told(world, "settings/mail-send/breaker/")

    assert (found["setting"], found["breaker_m"], found["breaker_n"], found["needed"]) == (
        "mail-send",
        10,
        3,
        1,
    )
    (server,) = (each for each in found["servers"] if each["server"] == "srv-1")
    assert (server["same_limit"], server["any_limit"], server["older"]) == (3, 10, False)
    assert [(each["exception_type"], each["verdict"]) for each in server["failures"]] == [
        ("KeyError", "wiped"),
        ("OSError", "counted"),
        ("TemporaryUnavailable", "temporary"),
        ("OSError", "counted"),
    ]
    last = server["failures"][-1]
    assert (last["same"], last["any"], "2 of any" in last["why"]) == (2, 2, True)
    assert server["failures"][1]["successes"] == 1


def test_the_breaker_tells_why_it_is_off_and_by_whom(world: World) -> None:
    found = told(world, f"settings/{TRIPPED}/breaker/")

    assert not found["enabled"] and found["says"].startswith("The breaker tripped: 3 consecutive IndexError")
    assert found["trip"]["id"] == BreakerTrip.objects.get().pk
    assert found["needed"] == 2 and {"srv-2", "srv-3"} <= {each["server"] for each in found["interruptions"]}
    assert found["says"] in looked_at(signed_in(world, "viewer"), f"/settings/{TRIPPED}/").text


def test_another_threshold_is_asked_without_changing_anything(world: World) -> None:
    FailureProtocol.objects.all().delete()
    fail(world, "mail-send", "srv-1", "OSError", "OSError", "ok", "OSError", "KeyError")
    found = told(world, "settings/mail-send/what-if/?m=6")

    asked, own = found["answers"]
    assert (asked["m"], asked["n"], asked["trip_count"], asked["failures"], own["m"]) == (6, 2, 1, 4, 10)
    (trip,) = asked["trips"]
    assert (trip["reason"], trip["exception_type"], trip["servers"]) == ("same_type", "OSError", ["srv-1"])
    assert own["trips"] == [] and not asked["cut"]
    assert [each["m"] for each in told(world, "settings/mail-send/what-if/")["answers"]] == [10]
    assert LaunchSetting.objects.get(key="mail-send").breaker_m == 10


def test_what_if_is_bounded_and_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(what_if_pages, "MOST", 4)
    monkeypatch.setattr(breaker_api, "MOST_TRIPS", 2)
    FailureProtocol.objects.all().delete()
    fail(world, "mail-send", "srv-1", *["OSError"] * 6)

    answer = told(world, "settings/mail-send/what-if/?m=1")["answers"][0]
    assert (answer["cut"], answer["failures"], answer["trip_count"], len(answer["trips"])) == (True, 4, 4, 2)


@pytest.mark.parametrize("query", ["m=0", "m=10001", "m=x", "n=3"])
def test_a_threshold_that_is_none_is_400(world: World, query: str) -> None:
    told(world, f"settings/mail-send/what-if/?{query}", code=400)


# -- two activations beside each other -----------------------------------------------------------------------


def next_of(before: Activation) -> Activation:
    """Of the same setting, beside `before`, which has ended."""
    now = timezone.now()
    ended = {"state": ActivationState.SUCCEEDED, "ended_at": now, "number": 1}
    Activation.objects.filter(pk=before.pk).update(
        **ended, launched_with={"concurrency": 4, "parameters": {"a": 1}}
    )
    launched = {"concurrency": 8, "parameters": {"a": 1, "b": "x"}}
    return Activation.objects.create(setting=before.setting, number=2, started_at=now, launched_with=launched)


def test_two_activations_are_told_beside_each_other(world: World) -> None:
    before = world.activations[KEY]
    after = next_of(before)
    row = FailureProtocol.objects.filter(activation_uuid=before.pk)[0]
    row.activation_uuid, row.fingerprint, row.exception_type = (
        after.pk,
        "v1:0000000000000001",
        "shop.NewError",
    )
    note([row])
    found = told(world, f"activations/{after.pk}/difference/")

    assert (found["setting"], found["before"]["id"], found["after"]["id"]) == (
        KEY,
        str(before.pk),
        str(after.pk),
    )
    first, *others = found["groups"]
    assert (first["change"], first["exception_type"], first["before"], first["after"]) == (
        "new",
        "shop.NewError",
        0,
        1,
    )
    assert others and {each["change"] for each in others} == {"gone"}
    sums = [
        sum(getattr(run, name) for run in before.runs.all()) for name in ("handled", "failed", "recovered")
    ]
    assert [found["before"][name] for name in ("handled", "failed", "recovered")] == sums
    assert found["before"]["attempts"] >= sums[0] + sums[1] and found["after"]["attempts"] == 0
    assert found["compared"] and found["changed"] == [
        {"name": "concurrency", "old": 4, "new": 8},
        {"name": "parameters.b", "old": None, "new": "x"},
    ]


def test_any_other_activation_of_the_setting_may_be_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(difference_api, "MOST_KINDS", 1)
    before = world.activations[KEY]
    after = next_of(before)

    found = told(world, f"activations/{before.pk}/difference/?before={after.pk}")
    assert [each["change"] for each in found["groups"]] == ["new"] and found["left_out"] > 0
    assert found["before"]["id"] == str(after.pk)


def test_what_is_no_other_activation_of_the_setting_is_404(world: World) -> None:
    first = world.activations[KEY]
    path = f"activations/{first.pk}/difference/"
    other = next(each for key, each in world.activations.items() if key != KEY)

    for query in ("", f"?before={first.pk}", f"?before={other.pk}", f"?before={UUID(int=3)}"):
        assert "Activation to compare with" in told(world, path + query, code=404)["detail"]
    told(world, f"{path}?before=x", code=400)
    told(world, f"activations/{UUID(int=3)}/difference/", code=404)


# -- retention -----------------------------------------------------------------------------------------------


def test_retention_tells_the_policy_and_the_periods(world: World, settings: Any) -> None:
    settings.MA_RETENTION_DAYS, settings.MA_RETENTION_SILENT_DAYS = 9, 0
    settings.MA_KEEP_AUDIT_DAYS, settings.MA_KEEP_REPLAYS_DAYS = 0, 77
    found = told(world, "retention/")

    assert (found["days"], found["silent_days"]) == (9, None)
    assert (found["periods"]["audit"], found["periods"]["replays"]) == (None, 77)
    settings.MA_RETENTION_SILENT_DAYS = 5
    assert told(world, "retention/")["silent_days"] == 5


def test_retention_tells_what_its_runs_deleted(world: World) -> None:
    runs = [RetentionRun.objects.create(state=RetentionState.DONE, deleted=n) for n in (0, 7, 9)]
    for setting, count in (("a", 3), ("b", 4)):
        RetentionFigure.objects.create(
            run=runs[1],
            what="protocols",
            setting_key=setting,
            rule="well",
            deleted=count,
            kept_for={"dead": 2},
        )
    first = told(world, "retention/runs/?page_size=2")
    second = api_client(world.people["viewer"]).get(first["next"]).json()

    assert [each["id"] for each in first["results"] + second["results"]] == [
        each.pk for each in reversed(runs)
    ]
    assert [each["by_kind"] for each in first["results"]] == [{}, {"protocols": 7}]
    whole = told(world, f"retention/runs/{runs[1].pk}/")
    assert whole["by_kind"] == {"protocols": 7}
    assert [(each["setting"], each["deleted"], each["kept"]) for each in whole["figures"]] == [
        ("b", 4, {"dead": 2}),
        ("a", 3, {"dead": 2}),
    ]


def test_a_page_of_runs_asks_for_their_figures_once(world: World, django_assert_max_num_queries: Any) -> None:
    for n in range(30):
        run = RetentionRun.objects.create(state=RetentionState.DONE, deleted=n)
        RetentionFigure.objects.create(run=run, what="audit", deleted=n + 1)
    client = api_client(world.people["viewer"])
    with django_assert_max_num_queries(12):
        found = client.get("/api/v1/retention/runs/").json()["results"]
    assert [each["by_kind"]["audit"] for each in found] == [*range(30, 0, -1)]


def test_retention_tells_of_each_setting_what_goes_next(world: World) -> None:
    LaunchSetting.objects.filter(key=KEY).update(retention_days=3)
    activation = world.activations[KEY]
    now = timezone.now()
    Activation.objects.filter(setting=activation.setting_id).exclude(pk=activation.pk).update(number=0)
    Activation.objects.filter(pk=activation.pk).update(
        number=9, ended_at=now, well=False, state=ActivationState.FAILED
    )
    rows = {each["setting"]: each for each in told(world, "retention/settings/?page_size=100")["results"]}

    assert sorted(rows) == sorted(LaunchSetting.objects.values_list("key", flat=True))
    mine = rows[KEY]
    assert (mine["days"], mine["retention_days"]) == (3, 3)
    assert (mine["last_finished"]["id"], mine["last_finished"]["well"]) == (str(activation.pk), False)
    assert [each["rule"] for each in mine["goes"]] == ["error"]
    assert rows["stock-sync"]["retention_days"] is None


# -- thresholds of alerts ------------------------------------------------------------------------------------


def test_every_kind_of_alert_tells_its_thresholds(world: World) -> None:
    kind, other, *_rest = every_kind()
    pool = Pool.objects.order_by("name")[0]
    AlertRule.objects.create(kind=kind.name, upper=kind.limits.upper + 7)
    AlertRule.objects.create(kind=kind.name, pool=pool, open_after_seconds=77)
    AlertRule.objects.create(kind=other.name, watched=False)
    rows = {each["kind"]: each for each in told(world, "alert-rules/", "chief")}

    assert sorted(rows) == [each.name for each in every_kind()]
    mine = rows[kind.name]
    assert mine["built_in"]["upper"] == kind.limits.upper
    assert mine["in_force"]["upper"] == kind.limits.upper + 7
    (own,) = mine["pools"]
    assert (own["pool"], own["in_force"]["open_after_seconds"]) == (pool.name, 77)
    assert own["in_force"]["upper"] == kind.limits.upper + 7
    assert (
        rows[other.name]["in_force"] is None and rows[other.name]["built_in"]["upper"] == other.limits.upper
    )
    assert mine["built_in"]["reminder_seconds"] == [each.total_seconds() for each in kind.limits.reminders]


def test_all_thresholds_are_two_queries_however_many_kinds(
    world: World, django_assert_max_num_queries: Any
) -> None:
    client = api_client(world.people["chief"])
    with django_assert_max_num_queries(8):
        assert client.get("/api/v1/alert-rules/").status_code == 200


# -- health --------------------------------------------------------------------------------------------------


def test_health_tells_every_component_by_its_code(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_redis", lambda: Part("Redis", DOWN, "gone", "Start it."))
    monkeypatch.setattr(health, "_database", lambda: Part("Database", OK, "fine"))
    found = told(world, "health/")
    parts = {each["component"]: each for each in found["components"]}

    assert {"database", "redis", "broker", "beat", "feed", "index", "provisioning", "retention"} <= set(parts)
    assert (parts["redis"]["state"], parts["redis"]["says"], parts["redis"]["what_to_do"]) == (
        "down",
        "gone",
        "Start it.",
    )
    assert found["state"] == "down" and parts["retention"]["about"] == "/retention/"
    assert {each["name"] for each in found["servers"]} == set(Server.objects.values_list("name", flat=True))


# -- rights --------------------------------------------------------------------------------------------------

RIGHTS = {
    f"settings/{KEY}/breaker/": ("agents.view_launchsetting", "failures.view_failureprotocol"),
    f"settings/{KEY}/what-if/": ("agents.view_launchsetting", "failures.view_failureprotocol"),
    "activations/{activation}/difference/": ("agents.view_activation", "failures.view_failureprotocol"),
    "retention/": ("retention.view_retentionrun",),
    "retention/settings/": ("retention.view_retentionrun",),
    "retention/runs/": ("retention.view_retentionrun",),
    "retention/runs/{run}/": ("retention.view_retentionrun",),
    "alert-rules/": ("alerts.view_alertrule",),
    "health/": ("agents.view_server",),
}


def permission(name: str) -> Permission:
    app, _dot, codename = name.partition(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)


@pytest.mark.parametrize("path", RIGHTS)
def test_each_needs_the_rights_of_its_page_and_no_other(world: World, path: str) -> None:
    after = next_of(world.activations[KEY])
    run = RetentionRun.objects.create(state=RetentionState.DONE)
    needed, path = RIGHTS[path], "/api/v1/" + path.format(activation=after.pk, run=run.pk)
    exact = make_person("exact")
    exact.user_permissions.set(map(permission, needed))

    assert api_client(world.people["outsider"]).get(path).status_code == 403
    assert api_client(exact).get(path).status_code == 200
    for left_out in needed:
        without = make_person(f"without {left_out}")
        without.user_permissions.set(Permission.objects.exclude(pk=permission(left_out).pk))
        answer = api_client(without).get(path)
        assert answer.status_code == 403 and answer.json()["what_to_do"], left_out
