"""The alerts that matter first, on the whole product: an agent that hangs, a backlog that fills, a schedule
that skips, a broker and a Redis that are away. Each opens the right alert once, and is gone after.

How soon is read from rows: the value of the opening, or what had not happened yet when it opened."""

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.product import scripted
from tests.product.house import House

POOL = "watched"
AT_MOST = 90.0
MESSAGES, SECONDS = 600, 0.25
# After so many the estimate has seen the backlog for longer than it needs.
SEEN = 200
# The pool's own bounds: what takes the built-in ones minutes or hours is seen in the time of a test.
RULES = """
from agents.models import Pool
from alerts.models import AlertRule
pool = Pool.objects.get(name="watched")
AlertRule.objects.create(kind="subscription_stalled", pool=pool, upper=8.0)
AlertRule.objects.create(kind="backlog_lasting", pool=pool, upper=30.0, open_after_seconds=0)
"""
# When the backlog will be gone, in seconds since 1970.
ESTIMATE = """
from django.utils import timezone
from agents.models import LaunchSetting
from agents.provisioning.subscriptions import drains_of
now = timezone.now()
pk = LaunchSetting.objects.get(key="fills").pk
print(now.timestamp() + drains_of([pk], now)[pk].seconds)
"""


@pytest.fixture(scope="module")
def watched(house: House) -> Iterator[House]:
    house.call("POST", "pools/", {"name": POOL, "servers": ["srv-1"]})
    house.manage(["shell", "-c", RULES])
    yield house
    house.call("PATCH", f"pools/{POOL}/", {"servers": []})


def alerts(house: House, kind: str, subject: str) -> list[dict[str, Any]]:
    return [row for row in house.pages(f"alerts/?kind={kind}") if row["subject"] == subject]


def opened(house: House, kind: str, subject: str) -> dict[str, Any]:
    house.until(f"{kind} of {subject} is open", lambda: is_open(house, kind, subject))
    return whole(house, kind, subject)


def is_open(house: House, kind: str, subject: str) -> bool:
    return any(row["state"] == "open" for row in alerts(house, kind, subject))


def closed(house: House, kind: str, subject: str) -> None:
    """It is gone, and was opened and closed once."""
    house.until(f"{kind} of {subject} is closed", lambda: not is_open(house, kind, subject), 240)
    steps = [each["step"] for each in reversed(whole(house, kind, subject)["transitions"])]
    assert steps == ["opened", "closed"]


def whole(house: House, kind: str, subject: str) -> dict[str, Any]:
    (row,) = alerts(house, kind, subject)
    return dict(house.call("GET", f"alerts/{row['id']}/"))


def at_opening(alert: dict[str, Any]) -> float:
    return float(alert["transitions"][-1]["value"])


def hanging(house: House, key: str) -> int:
    """The pid of the agent process of this setting that began first, as it wrote down itself."""
    lines = (house.data / f"truth-{key}.jsonl").read_text().splitlines()
    return int(json.loads(lines[0])["pid"])


def test_hanging_agents_backlogs_and_skipped_schedules_are_told_once_and_gone_after(watched: House) -> None:
    house = watched
    own: dict[str, Any] = {"pool": POOL, "spread": "ANY", "concurrency": 1, "grace_seconds": 1.0}
    hangs = house.setting("hangs", **own)
    fills = house.setting("fills", **own)
    skips = house.setting("skips", timing="DELAYED", schedule={"every_seconds": 15}, **own)
    long = house.setting("long", handling_timeout_seconds=600.0, **own)
    for key in ("hangs", "fills", "skips", "long"):
        house.enable(key)
    # Each agent hangs or works on its first message; others wait behind it.
    house.publish(hangs, [{"do": "sleep", "seconds": 3600, "first": 1, "note": 1}, scripted.ok(2)])
    house.publish(long, [scripted.slow(1, 3600), scripted.ok(2)])
    house.publish(skips, [scripted.slow(1, 50)])
    house.publish(fills, [scripted.slow(n, SECONDS) for n in range(MESSAGES)])

    backlog = opened(house, "backlog_lasting", "fills")
    assert len(house.truth("fills")) < MESSAGES, "told while there was a backlog"
    house.until("a third of the backlog is handled", lambda: len(house.truth("fills")) > SEEN, 240)
    asked_at, expected = time.time(), float(house.manage(["shell", "-c", ESTIMATE]).split()[-1])
    skipped = opened(house, "schedule_skipped", "setting:skips")
    stalled = opened(house, "subscription_stalled", "hangs")
    assert (backlog["setting"], stalled["setting"], skipped["setting"]) == ("fills", "hangs", "skips")
    assert at_opening(stalled) <= AT_MOST
    windows = house.call("GET", "settings/skips/windows/")["results"]
    due = min(row["due_at"] for row in windows if row["result"] == "skipped")
    late = datetime.fromisoformat(skipped["opened_at"]) - datetime.fromisoformat(due)
    assert late <= timedelta(seconds=AT_MOST)

    os.kill(hanging(house, "hangs"), signal.SIGKILL)  # its message comes again, and is handled then
    closed(house, "subscription_stalled", "hangs")
    closed(house, "schedule_skipped", "setting:skips")
    closed(house, "backlog_lasting", "fills")
    house.until("the backlog is gone", lambda: len(house.truth("fills")) == MESSAGES)
    over = json.loads((house.data / "truth-fills.jsonl").read_text().splitlines()[-1])["at"] + SECONDS
    assert expected - asked_at == pytest.approx(over - asked_at, rel=0.25)
    assert not alerts(house, "subscription_stalled", "long"), "within its limit it may take its time"
    for key in ("hangs", "fills", "skips", "long"):
        house.call("POST", f"settings/{key}/disable/", {"reason": "over"})


@pytest.mark.parametrize(
    ("process", "kind", "subject"), [("artemis", "broker_away", "broker"), ("redis", "redis_away", "redis")]
)
def test_a_broker_or_redis_that_is_away_is_told_once_and_gone_after(
    house: House, process: str, kind: str, subject: str
) -> None:
    before = {row["id"] for row in alerts(house, kind, subject)}
    assert not is_open(house, kind, subject)
    house.kill(process)
    house.runner.stop(process)  # it does not come back by itself
    try:
        house.until(f"{kind} is open", lambda: is_open(house, kind, subject))
    finally:
        house.runner.start(process)
    house.until(f"{kind} is closed", lambda: not is_open(house, kind, subject))
    (row,) = (row for row in alerts(house, kind, subject) if row["id"] not in before)
    alert = house.call("GET", f"alerts/{row['id']}/")
    assert at_opening(alert) <= AT_MOST
    assert [each["step"] for each in reversed(alert["transitions"])] == ["opened", "closed"]
