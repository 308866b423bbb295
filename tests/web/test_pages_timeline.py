"""The timeline: each kind of event by the rows that it has, in the order of time, to those who may see it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import BreakerTrip, LaunchSetting, Server, StateChange
from agents.reasons import AGENT_VERSION
from agents.state_history import note
from alerts.models import Alert
from dlq.models import ReplayJob
from metrics.timeline.events import Below, Subject, Window, below_in, newest_events
from metrics.timeline.queries import KINDS, event_kinds
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.rows import make_person

KEY = "orders-export"


@pytest.fixture
def quiet(world: World) -> World:
    """Nothing has happened yet."""
    Alert.objects.all().delete()
    BreakerTrip.objects.all().delete()
    ReplayJob.objects.all().delete()
    StateChange.objects.all().delete()
    return world


def everything(setting: LaunchSetting, server: Server) -> None:
    """One event of each kind, an hour ago, a minute after each other."""
    now = timezone.now() - timedelta(hours=1)

    def at(minutes: int) -> Any:
        return now + timedelta(minutes=minutes)

    BreakerTrip.objects.create(setting=setting, reason="same_type", at=at(1), ended_at=at(2))
    note(setting, "setting", "disabled", "enabled", now=at(3))
    note(setting, "server_stop", "", "stopped", now=at(4), server=server)
    note(None, "version", "1.3", "1.4", now=at(5), reason=AGENT_VERSION(agent=setting.agent), server=server)
    note(None, "server", "active", "cordoned", now=at(6), server=server)
    ReplayJob.objects.create(setting=setting, setting_key=setting.key, scope="matching", created_at=at(7))
    Alert.objects.create(
        kind="server_silent", severity=2, state="closed", server=server, opened_at=at(8), closed_at=at(9)
    )


def test_every_kind_of_event_is_there_and_leads_to_its_page(quiet: World) -> None:
    setting, server = quiet.settings[KEY], setting_server(quiet)
    everything(setting, server)
    page = looked_at(signed_in(quiet, "chief"), "/timeline/")

    words = ("Replay", "Cordoned", "Version 1.4", "Stopped on a server", "Enabled", "Trip")
    places = [page.text.partition("When Event Subject")[2].index(f" {word} ") for word in words]
    assert places == sorted(places), "the newest first"
    assert f"agent {setting.agent} 1.3 → 1.4, srv-1" in page.text
    trip, job, alert = BreakerTrip.objects.get(), ReplayJob.objects.get(), Alert.objects.get()
    wanted = {f"/trips/{trip.pk}/", f"/replays/{job.pk}/", f"/alerts/{alert.pk}/", f"/settings/{KEY}/"}
    assert wanted <= set(page.links())


def setting_server(world: World) -> Server:
    return Server.objects.get(name="srv-1")


def test_marks_of_what_happened_lie_above_the_curves_of_the_pages(quiet: World) -> None:
    everything(quiet.settings[KEY], setting_server(quiet))
    client = signed_in(quiet, "chief")
    shapes = {
        path: client.get(path).content.decode().count('<line class="event"')
        for path in (f"/settings/{KEY}/?range=6h", "/servers/srv-1/?range=6h", "/timeline/?range=6h")
    }
    assert all(shapes.values()), shapes


@pytest.mark.both_databases
def test_a_subject_has_what_happened_to_it_alone(quiet: World) -> None:
    everything(quiet.settings[KEY], setting_server(quiet))
    chief = quiet.people["chief"]
    other, away = quiet.settings["prices-import"], Server.objects.get(name="srv-2")

    def kinds(**subject: Any) -> list[str]:
        return sorted(event.kind.name for event in of(chief, Subject(**subject)))

    assert kinds() == ["alert", "duty", "replay", "stop", "switch", "trip", "version"]
    assert kinds(setting=quiet.settings[KEY]) == ["replay", "stop", "switch", "trip", "version"]
    assert kinds(server=setting_server(quiet)) == ["alert", "duty", "stop", "version"]
    assert kinds(server=away) == []
    assert "trip" not in kinds(setting=other) and "replay" not in kinds(setting=other)


def of(user: Any, subject: Subject = Subject(), most: int = 100, below: Below | None = None) -> Sequence[Any]:  # noqa: B008 - frozen
    now = timezone.now()
    kinds = event_kinds(user)
    window = Window(now - timedelta(days=1), now, most, below)
    return newest_events(kinds, {kind.name for kind in kinds}, subject, window)


@pytest.mark.both_databases
def test_pages_of_events_hold_each_once_also_where_many_happen_at_one_instant(quiet: World) -> None:
    setting, server = quiet.settings[KEY], setting_server(quiet)
    now = timezone.now() - timedelta(hours=1)
    for number in range(24):
        at = now - timedelta(minutes=number // 8)
        note(setting, "setting", "disabled", "enabled", now=at)
        note(setting, "server_stop", "", "stopped", now=at, server=server)
        ReplayJob.objects.create(setting=setting, setting_key=KEY, scope="matching", created_at=at)
    chief = quiet.people["chief"]
    every = [event.place for event in of(chief)]
    assert len(every) == len(set(every)) == 72

    seen: list[str] = []
    below = None
    while page := of(chief, most=7, below=below):
        seen += [event.place for event in page]
        below = below_in(page[-1].place, event_kinds(chief))
        assert below is not None
    assert seen == every


AT = "2026-03-01T00:00:00+00:00"


@pytest.mark.parametrize(
    "text", ["", "x", "trip.", "trip.2026-03-01_1", f"nothing.{AT}_1", "trip.x_1", f"replay.{AT}_5"]
)
def test_a_place_that_nobody_wrote_begins_at_the_newest(text: str) -> None:
    assert below_in(text, KINDS) is None


def test_the_list_goes_on_and_keeps_what_was_asked_for(quiet: World) -> None:
    for number in range(60):
        at = timezone.now() - timedelta(minutes=10, seconds=number)
        note(quiet.settings[KEY], "setting", "disabled", "enabled", now=at)
    page = looked_at(signed_in(quiet, "viewer"), f"/timeline/?setting={KEY}&kind=switch&range=6h")
    [older] = [url for url in page.links() if "before=" in url]
    assert f"setting={KEY}" in older and "kind=switch" in older and "range=6h" in older
    rest = looked_at(signed_in(quiet, "viewer"), f"/timeline/{older}")
    assert rest.text.count(" Enabled orders-export") == 10


def test_only_wanted_kinds_are_shown(quiet: World) -> None:
    everything(quiet.settings[KEY], setting_server(quiet))
    text = looked_at(signed_in(quiet, "chief"), "/timeline/?kind=trip&kind=duty").text.partition(
        "When Event"
    )[2]
    assert " Trip " in text and " Cordoned " in text and "Version 1.4" not in text
    none = looked_at(signed_in(quiet, "chief"), "/timeline/?kind=trip&setting=prices-import").text
    assert "No matching events in this period." in none


def test_a_name_that_nothing_has_is_said(quiet: World) -> None:
    client = signed_in(quiet, "chief")
    assert "There is no setting with this key." in looked_at(client, "/timeline/?setting=nothing").text
    assert "There is no server with this name." in looked_at(client, "/timeline/?server=nothing").text


def test_each_kind_needs_the_right_of_its_page(quiet: World) -> None:
    everything(quiet.settings[KEY], setting_server(quiet))
    person = make_person("narrow")
    client = Client()
    client.force_login(person)
    assert client.get("/timeline/").status_code == 403
    person.user_permissions.set(Permission.objects.filter(codename="view_launchsetting"))
    text = looked_at(client, "/timeline/").text.partition("When Event Subject")[2]
    assert " Enabled " in text and " Stopped on a server " in text
    assert not any(word in text for word in (" Trip ", "Version 1.4", " Cordoned ", " Replay "))
    assert client.get("/timeline/?server=srv-1").status_code == 403
    assert client.get("/timeline/?kind=trip").status_code == 200


def test_questions_do_not_grow_with_what_happened(quiet: World) -> None:
    client = signed_in(quiet, "chief")

    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            looked_at(client, "/timeline/?range=30d")
        return len(queries)

    everything(quiet.settings[KEY], setting_server(quiet))
    asked()
    few = asked()
    for _number in range(40):
        everything(quiet.settings[KEY], setting_server(quiet))
    assert asked() <= few


def test_hostile_versions_are_only_texts(quiet: World) -> None:
    note(None, "version", "<b>", "<script>\u202e", now=timezone.now(), server=setting_server(quiet),
         reason=AGENT_VERSION(agent="<img>"))  # fmt: skip
    page = signed_in(quiet, "chief").get("/timeline/").content.decode()
    assert "<script>\\u202e" not in page and "\u202e" not in page and "<img>" not in page
    assert "&lt;script&gt;" in page


def test_a_kind_that_there_is_not_is_said(quiet: World) -> None:
    client = signed_in(quiet, "chief")
    assert "no kind of event" not in looked_at(client, "/timeline/?kind=switch").text
    assert "There is no kind of event named “tripps”." in looked_at(client, "/timeline/?kind=tripps").text
    assert "“tripps”" in looked_at(client, "/timeline/?kind=switch&kind=tripps").text
