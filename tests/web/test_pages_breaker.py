"""The breaker panel answers why a setting is off and why it is not; trips show their evidence and what was
done."""

from datetime import timedelta
from uuid import UUID

import pytest

from agents.models import BreakerTrip, Interruption, LaunchSetting, Run, RunPhase
from alerts.models import Notice, NoticeTarget
from failures.models import FailureProtocol
from failures.pages import breaker as breaker_pages
from failures.pages import what_if as what_if_pages
from tests.web.factories import HOSTILE, World
from tests.web.launches import TRIPPED
from tests.web.pages import Elements, looked_at, signed_in


def panel(world: World, key: str, who: str = "viewer") -> str:
    html = signed_in(world, who).get(f"/settings/{key}/").content.decode()
    return Elements(html.split('id="breaker"')[1].split("</section>")[0]).text


def fail(world: World, key: str, server: str, *kinds: str) -> list[FailureProtocol]:
    """Failures of the run, the newest of all, in this order; `ok` before one is a success before it."""
    run, made, gap = world.runs[key, server], [], 0
    for number, kind in enumerate(kinds):
        if kind == "ok":
            gap += 1
            continue
        world.number += 1
        temporary = kind == "TemporaryUnavailable"
        made.append(
            FailureProtocol.objects.create(
                id=UUID(int=500_000 + world.number), spool=UUID(int=88), number=world.number, setting_key=key,
                setting=run.activation.setting, activation=run.activation, activation_uuid=run.activation_id,
                run=run,
                epoch=run.epoch, server=run.server, server_name=server, agent="a", exception_type=kind,
                outcome="temporary" if temporary else "raised", temporary=temporary, counted=not temporary,
                fingerprint="v1:1", successes_before=gap, message_key=f"ID:{number}",
                occurred_at=world.now + timedelta(milliseconds=number),
            )
        )  # fmt: skip
        gap = gap if temporary else 0
    return made


def test_why_it_is_off_is_said_in_one_sentence(world: World) -> None:
    text = panel(world, TRIPPED)

    assert (
        "Why is the setting disabled? The breaker tripped: 3 consecutive IndexError "
        "failures on srv-2, srv-3. The setting stays disabled until"
    ) in text
    assert "2 of 2 required servers" in text and "stopped on server srv-1" in text
    assert "disabled setting returns" in text and "oncall@shop.example" in text


def test_an_interruption_of_an_old_epoch_is_shown_without_effect(world: World) -> None:
    Interruption.objects.filter(effective=False).update(trip=BreakerTrip.objects.get())

    assert "no effect from an earlier start or another activation" in panel(world, TRIPPED)


def test_why_it_is_off_tells_a_person_from_the_breaker(world: World) -> None:
    assert ("Why is the setting disabled? operator disabled the setting. The breaker did not trip.") in panel(
        world, "stock-sync"
    )


def test_one_server_of_two_is_not_enough_and_that_is_said(world: World) -> None:
    text = panel(world, "orders-export")

    assert (
        "Why is the setting still enabled? The setting is interrupted on srv-3 and still "
        "running on srv-1, srv-2, srv-4. It is disabled only after interruptions on 2 "
        "servers."
    ) in text
    assert "1 of 2" in text


def test_the_nearest_server_is_told_with_what_is_missing(world: World) -> None:
    Run.objects.filter(activation__setting__key="mail-send").update(
        same_type="OSError", same_count=2, any_count=5
    )

    text = panel(world, "mail-send")
    assert (
        "srv-1 is closest to the threshold: 2 of 3 consecutive OSError failures and 5 of 10 of any type."
    ) in text
    assert "1 more consecutive failure disables the setting." in text


def test_each_failure_says_whether_it_counted(world: World) -> None:
    FailureProtocol.objects.all().delete()
    fail(world, "mail-send", "srv-1", "KeyError", "ok", "OSError", "TemporaryUnavailable", "OSError")
    LaunchSetting.objects.filter(key="mail-send").update(count_once=True)
    text = panel(world, "mail-send")

    assert "count reset: a later message was processed successfully" in text
    assert "temporary: not counted, does not reset the count" in text
    assert "counted; consecutive failures: 2 of this type, 2 of any type" in text
    assert "OSError × 2" in text and "KeyError × 1" in text


def test_a_repeated_message_counts_once_where_that_is_wished(world: World) -> None:
    FailureProtocol.objects.all().delete()
    LaunchSetting.objects.filter(key="mail-send").update(count_once=True)
    for made in fail(world, "mail-send", "srv-1", "OSError", "OSError"):
        FailureProtocol.objects.filter(pk=made.pk).update(message_key="ID:same")

    assert "repeat of the same message: counted once" in panel(world, "mail-send")


def test_failures_of_another_epoch_are_not_on_the_strip(world: World) -> None:
    FailureProtocol.objects.all().delete()
    fail(world, "mail-send", "srv-1", "OSError")
    FailureProtocol.objects.update(epoch=99)

    assert "OSError" not in panel(world, "mail-send")


def test_only_who_may_enable_resumes_a_server(world: World) -> None:
    path = "/settings/orders-export/resume/srv-3/"
    assert path in looked_at(signed_in(world, "operator"), "/settings/orders-export/").links()
    viewer = looked_at(signed_in(world, "viewer"), "/settings/orders-export/")
    assert path not in viewer.links() and "Can enable launch settings" in viewer.text


def test_resuming_starts_a_new_run_on_that_server_alone(world: World) -> None:
    server = world.servers["srv-3"]
    server.duty = "active"
    server.save()
    before = set(Run.objects.values_list("pk", flat=True))
    answer = signed_in(world, "operator").post("/settings/orders-export/resume/srv-3/", follow=True)

    assert "Resumed on srv-3:" in answer.content.decode()
    run = Run.objects.exclude(pk__in=before).get()
    assert (run.server.name, run.state, run.epoch > 3) == ("srv-3", RunPhase.WANTED, True)


def test_a_long_story_of_a_trip_is_folded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client, folded = signed_in(world, "viewer"), '<details class="plain"><summary>Timeline'

    for most, is_folded in ((100, False), (2, True)):
        monkeypatch.setattr(breaker_pages, "MOST_UNFOLDED", most)
        assert (folded in client.get(f"/settings/{TRIPPED}/").content.decode()) == is_folded


def test_a_trip_shows_its_evidence(world: World) -> None:
    made = fail(world, TRIPPED, "srv-2", "IndexError", "IndexError", "IndexError")
    trip = BreakerTrip.objects.get()
    ids = [str(each.pk) for each in made] + ["no id", str(UUID(int=10**12))]
    trip.interruptions.filter(server__name="srv-2", effective=True).update(evidence=ids)
    page = looked_at(signed_in(world, "viewer"), f"/trips/{trip.pk}/")

    assert all(f"/protocols/{each.pk}/" in page.links() for each in made)
    assert "1 failure has not arrived yet or was deleted." in page.text
    assert (
        "webhook http://pager.example/…" in page.text
        and "/hook" not in page.text
        and "503 Service Unavailable" in page.text
    )


def test_the_list_of_trips_is_narrowed_by_setting_and_state(world: World) -> None:
    client = signed_in(world, "viewer")

    assert "3 consecutive IndexError" in looked_at(client, "/trips/?setting=returns&state=open").text
    assert "No results." in looked_at(client, "/trips/?state=ended").text
    assert "No results." in looked_at(client, "/trips/?setting=invoices").text


def test_another_limit_is_asked_without_changing_anything(world: World) -> None:
    FailureProtocol.objects.all().delete()
    fail(world, "mail-send", "srv-1", "OSError", "OSError", "ok", "OSError", "KeyError")
    client = signed_in(world, "viewer")

    text = looked_at(client, "/settings/mail-send/what-if/?m=6").text
    assert "With M = 6, the breaker would have tripped 1 time in the last 30 days, at" in text
    assert "Current threshold: With M = 10, the breaker would not have tripped in the last 30 days." in text
    assert LaunchSetting.objects.get(key="mail-send").breaker_m == 10


def test_a_limit_that_is_none_is_refused_at_the_field(world: World) -> None:
    for wrong in ("0", "x", "-3", "1e9", ""):
        text = looked_at(signed_in(world, "viewer"), f"/settings/mail-send/what-if/?m={wrong}").text
        assert "would" not in text.split("Check")[1].split("Times are")[0], wrong


def test_what_if_says_when_it_looked_at_the_latest_only(world: World, monkeypatch: object) -> None:
    monkeypatch.setattr(what_if_pages, "MOST", 3)  # type: ignore[attr-defined]
    FailureProtocol.objects.all().delete()
    fail(world, "mail-send", "srv-1", *["OSError"] * 6)

    text = looked_at(signed_in(world, "viewer"), "/settings/mail-send/what-if/?m=9").text
    assert "Too many failures: the check covers only the latest 3, starting from" in text
    assert "would have tripped 1 time" in text


def test_a_test_notice_is_sent_from_the_page_and_told_how_it_went(world: World) -> None:
    target = NoticeTarget.objects.create(
        setting=LaunchSetting.objects.get(key="invoices"), channel="email", address="oncall@shop.example"
    )
    path = f"/settings/invoices/notices/{target.pk}/test/"
    assert signed_in(world, "viewer").post(path).status_code == 403
    assert (
        signed_in(world, "operator").post(f"/settings/mail-send/notices/{target.pk}/test/").status_code == 404
    )
    assert not Notice.objects.filter(target=target).exists()

    answer = signed_in(world, "operator").post(path, follow=True)
    notice = Notice.objects.get(target=target)
    words = "Test notification delivered:" if notice.state == "sent" else "Test notification not delivered to"
    assert words in answer.content.decode()
    assert "oncall@shop.example" in looked_at(signed_in(world, "viewer"), "/settings/invoices/").text


def test_a_hostile_type_is_words_on_the_strip(world: World) -> None:
    fail(world, "orders-export", "srv-1", HOSTILE.partition("\0")[0], "ok", "KeyError")
    html = signed_in(world, "viewer").get("/settings/orders-export/").content.decode()
    marks = Elements(html.split('class="strip"')[1].split("</ol>")[0])

    titles = [
        attributes["title"] or "" for tag, attributes in marks.found if tag == "a" and "title" in attributes
    ]
    assert any(title.startswith("<script>alert(1)</script>U+202Etxt.exeU+202C") for title in titles), titles
    assert "<script" not in html.split('class="strip"')[1].split("</ol>")[0] and "\u202e" not in html
