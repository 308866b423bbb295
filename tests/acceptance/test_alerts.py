"""Alerts of the running product: letters die, people are told by webhook, the letters are handled, the alert closes."""

import json
from typing import Any

import pytest

from tests.acceptance import scripted
from tests.acceptance.house import House
from tests.web.listeners import Hook, listening_hook

# The house is brought up within it where this is the first test.
pytestmark = pytest.mark.timeout(900)

KEY = "alerting"
QUEUE = f"DLQ.{KEY}"
# More than the 20 that an hour is compared with at least.
DEAD = 25
QUICK = {"open_after_seconds": 0, "close_after_seconds": 0}
# Bounds that need no day and no ten minutes. The queue is followed as if for two hours: younger ones are not compared.
PREPARED = f"""
from datetime import timedelta
from django.utils import timezone
from agents.models import AlertRule
from dlq.models import LetterQueue
AlertRule.objects.create(kind="dead_letters_growing", upper=1.0, lower=0.5, **{QUICK})
AlertRule.objects.create(kind="dead_letters_old", upper=5.0, lower=5.0, **{QUICK})
LetterQueue.objects.filter(queue="{QUEUE}").update(added_at=timezone.now() - timedelta(hours=2))
"""
# As if the deaths were of the hour before the last one.
TWO_HOURS_LATER = f"""
from datetime import timedelta
from django.db.models import F
from dlq.models import DeadLetter
DeadLetter.objects.filter(queue="{QUEUE}").update(seen_at=F("seen_at") - timedelta(hours=2))
"""
# The all-clear waits a quarter of an hour, in case that the cause comes back.
ALL_CLEAR_IS_DUE = """
from django.utils import timezone
from agents.models import Notice
Notice.objects.filter(state="pending", transition__step="closed").update(next_at=timezone.now())
"""


def alerts(house: House, kind: str) -> list[dict[str, Any]]:
    found = house.pages(f"alerts/?kind={kind}")
    return [each for each in found if each["setting"] == KEY]


def told(hook: Hook, kind: str, step: str) -> list[dict[str, Any]]:
    bodies = [json.loads(body) for _path, _headers, body in hook.heard]
    return [body for body in bodies if (body.get("kind"), body.get("step"), body.get("setting")) == (kind, step, KEY)]


def test_dead_letters_that_grow_and_grow_old_are_told_and_their_alerts_close(house: House) -> None:
    address = house.setting(KEY, policy={"max_attempts": 1})
    house.enable(KEY)
    house.until("it runs", lambda: house.call("GET", f"queues/{KEY}/")["consumers"] >= 1)
    with listening_hook() as hook:
        house.call("POST", "notice-targets/", {"setting": KEY, "channel": "webhook", "address": hook.url})
        house.publish(address, [scripted.poisoned(n) for n in range(DEAD)])
        house.until("all are dead and indexed", lambda: len(house.dead_letters(KEY)) == DEAD)
        house.manage("shell", "-c", PREPARED)

        for kind in ("dead_letters_growing", "dead_letters_old"):
            house.until(f"{kind} is open", lambda kind=kind: [a["state"] for a in alerts(house, kind)] == ["open"])
            house.until(f"{kind} was told", lambda kind=kind: len(told(hook, kind, "opened")) == 1)
        [growing] = told(hook, "dead_letters_growing", "opened")
        assert growing["subject"] == QUEUE and growing["value"] >= 1.0 and str(DEAD) in growing["says"]
        assert growing["event"] == "alert" and growing["pools"] == ["demo"] and growing["link"] and growing["about"]

        # What people do about it: the better agent, and the letters given back to it.
        house.mend(KEY)
        assert house.replay_all(KEY)["letters"]["given_back"] == DEAD
        house.until("none is left", lambda: house.count(KEY, QUEUE) == [0, 0])
        house.until(
            "the old ones are gone", lambda: [a["state"] for a in alerts(house, "dead_letters_old")] == ["closed"]
        )
        assert [a["state"] for a in alerts(house, "dead_letters_growing")] == ["open"], "they did die within the hour"

        house.manage("shell", "-c", TWO_HOURS_LATER)
        house.until(
            "it grows no more", lambda: [a["state"] for a in alerts(house, "dead_letters_growing")] == ["closed"]
        )
        for kind in ("dead_letters_growing", "dead_letters_old"):
            assert told(hook, kind, "closed") == [], "not before it is sure"
        house.manage("shell", "-c", ALL_CLEAR_IS_DUE)
        for kind in ("dead_letters_growing", "dead_letters_old"):
            house.until(f"the all-clear of {kind}", lambda kind=kind: len(told(hook, kind, "closed")) == 1)
        assert not any(
            alert["by_hand"] for kind in ("dead_letters_growing", "dead_letters_old") for alert in alerts(house, kind)
        )
