"""Figures over time by REST: of what a person may see, bounded, with times that people understand."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from metrics import rollup
from metrics.rules import instant, minute_of
from tests.web.rows import api_client, make_person
from tests.web.test_minute_figures import MINUTE, Hall

pytestmark = pytest.mark.django_db
PATH = "/api/v1/metrics/series/"
BOTH = ("agents.view_launchsetting", "agents.view_server")


@pytest.fixture
def hall() -> Hall:
    made = Hall()
    start = instant(minute_of(timezone.now())) - 5 * MINUTE
    made.send(made.minute(start), made.minute(start + MINUTE, processing="44:10"))
    rollup.fold_all(timezone.now())
    return made


def person(*permissions: str) -> Any:
    made = make_person("somebody")
    names = [each.partition(".")[2] for each in permissions]
    made.user_permissions.set(Permission.objects.filter(codename__in=names))
    return api_client(made)


def test_it_says_what_was_handled_and_how_fast(hall: Hall) -> None:
    client = person(*BOTH)
    for asked in ({}, {"setting": "orders"}, {"server": "srv-1"}, {"setting": "orders", "server": "srv-1"}):
        answer = client.get(PATH, asked)
        assert answer.status_code == 200, answer.content
        told = answer.json()
        assert (told["setting"], told["server"]) == (asked.get("setting"), asked.get("server"))
        assert told["step_seconds"] == 60 and 59 <= len(told["points"]) <= 61
        assert (told["total"]["succeeded"], told["total"]["failed"], told["total"]["bytes"]) == (16, 4, 1400)
        assert told["since"] == told["points"][0]["start"]
        last = datetime.fromisoformat(told["points"][-1]["start"])
        assert datetime.fromisoformat(told["until"]) == last + timedelta(minutes=1)
        busy = [point for point in told["points"] if point["succeeded"]]
        assert [point["processing"]["p95"] for point in busy] == pytest.approx([0.0587, 1.878], rel=0.01)
        assert told["total"]["processing"]["p50"] == pytest.approx(0.0587, rel=0.01)
        idle = told["points"][0]
        assert (idle["processing"]["p50"], idle["waiting"], idle["seconds"]) == (None, None, 60)


def test_a_range_is_bounded_and_a_wrong_one_refused(hall: Hall) -> None:
    client = person(*BOTH)
    told = client.get(PATH, {"since": "1926-01-01T00:00:00Z", "until": "2126-01-01T00:00:00+03:00"}).json()
    assert told["step_seconds"] == 86_400 and len(told["points"]) <= 400 and told["total"]["succeeded"] == 16
    now = timezone.now()
    backwards = client.get(PATH, {"since": now.isoformat(), "until": (now - timedelta(days=1)).isoformat()})
    assert (backwards.status_code, backwards.json()["where"]) == (400, "since")
    empty = client.get(PATH, {"since": now.isoformat(), "until": now.isoformat()}).json()
    assert empty["points"] == [] and empty["total"]["processing"]["p95"] is None
    first = client.get(PATH, {"until": "0001-01-01T00:30:00Z"})
    assert first.status_code == 200 and first.json()["total"]["succeeded"] == 0
    for wrong in ({"since": "yesterday"}, {"until": "0"}, {"form": "x"}, {"setting": "x" * 201}):
        assert client.get(PATH, wrong).status_code == 400, wrong


def test_of_nothing_there_is_nothing(hall: Hall) -> None:
    client = person(*BOTH)
    for asked in ({"setting": "nowhere"}, {"server": "nowhere"}):
        assert client.get(PATH, asked).status_code == 404, asked


@pytest.mark.parametrize(
    ("asked", "needed"),
    [
        ({}, BOTH[:1]),
        ({"setting": "orders"}, BOTH[:1]),
        ({"server": "srv-1"}, BOTH[1:]),
        ({"setting": "orders", "server": "srv-1"}, BOTH),
    ],
    ids=str,
)
def test_it_needs_the_right_of_the_page(hall: Hall, asked: dict[str, str], needed: tuple[str, ...]) -> None:
    assert person(*needed).get(PATH, asked).status_code == 200
    for left_out in needed:
        without = make_person(f"without {left_out}")
        without.user_permissions.set(Permission.objects.exclude(codename=left_out.partition(".")[2]))
        assert api_client(without).get(PATH, asked).status_code == 403
    assert api_client().get(PATH, asked).status_code == 401
