"""A rule for many letters on the real broker, its worker killed at every step: each letter is worked on once,
edited or not, and is never in two places when the job is over."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.amqp.codec import decode
from broker.port import Message, Settle
from contract.typed import Typed
from tests.dlq.processes import Processes
from tests.dlq.stage import Stage

pytestmark = pytest.mark.django_db

PLAIN = "no json"
BEGIN = """
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from agents.models import Destination, LaunchSetting, Pool
from console.broker import management
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.publisher import AmqpPublisher
from dlq.replay.creation import begin_replay
from dlq.replay.requests import ReplayRequest
from dlq.edit.operations import rule_for, ruled
from dlq.index.feed import Feed, Inbox
from dlq.models import DeadLetter
from dlq.replay.preflight.rules import CODES
from console.jobs import engine

engine.send = lambda *_, **__: True
pool, destination = Pool.objects.create(name="p"), Destination.objects.create(name="t.{key}")
setting = LaunchSetting.objects.create(key="{key}", agent="a", pool=pool, destination=destination)
inbox, account = Inbox(), settings.MA_BROKER_AMQP
consumer = AmqpConsumer(account, "MA.DLA", "DLQ.feed", inbox, core=True)
feed = Feed(consumer, inbox, management(), AmqpPublisher(account), "MA.DLA")
feed.start()
while DeadLetter.objects.count() < 3:
    feed.step()
feed.stop()
chief = User.objects.create_superuser("chief")
rule = rule_for([{{"op": "set_json", "pointer": "/sum", "json": "9"}}], setting, chief)
wanted = ruled(ReplayRequest(setting, "edit", "all", acknowledged=CODES), rule)
begin_replay(wanted, by=chief, now=timezone.now())
"""
WORK = """
import json
from django.utils import timezone
from django.contrib.auth.models import User
from console.jobs import engine
from console.operations.operation import perform
from dlq.replay.requests import ReplayRequest, check_request
from dlq.models import DeadLetter, LetterEdit, ReplayItem, ReplayJob
from dlq.replay.operations import CancelReplay
from tests.dlq.jobs import run_replay

engine.send = lambda *_, **__: True
if {cancelled}:
    perform(CancelReplay, ReplayJob.objects.get(), User.objects.get())
for _turn in range(20):
    ReplayJob.objects.update(lease_until=None)
    run_replay(str(ReplayJob.objects.get().pk))
    if ReplayJob.objects.get().finished_at:
        break
wanted = ReplayRequest(ReplayJob.objects.get().setting, "put_back", "all")
flight = check_request(wanted, by=User.objects.get(), now=timezone.now())
job, items = ReplayJob.objects.get(), ReplayItem.objects.order_by("letter").select_related("letter")
print(json.dumps({{
    "job": job.state, "skipped": job.skipped,
    "items": {{item.letter.message_key: [item.state, item.why] for item in items}},
    "edits": sorted(LetterEdit.objects.values_list("state", flat=True)),
    "bin": DeadLetter.objects.filter(queue="DLQ.bin", state="dead").count(),
    "not_put_back": flight.skipped,
}}))
"""


class Scene:
    """Two letters that the rule fits and one that it does not."""

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage, self.processes = stage, Processes(folder, stage)
        self.key = stage.key("e")
        stage.management.call("queue.DLQ.bin", "removeAllMessages")
        bodies = {"A": '{"sum": 1}', "B": '{"sum": 2}', "C": PLAIN}
        messages = [
            Message(body=Typed("string", body), message_id=Typed("string", f"{self.key}-{name}"))
            for name, body in bodies.items()
        ]
        stage.publish(f"t.{self.key}", *messages)
        stage.consume(self.key, 3, Settle.REJECT)

    def dies(self, place: str) -> None:
        """A job of all three is begun, and its worker is killed at this place."""
        code = BEGIN.format(key=self.key) + WORK.format(cancelled=False)
        self.processes.crashes(place, "shell", "-c", code)

    def goes_on(self, *, cancelled: bool = False) -> dict[str, Any]:
        """Another worker; what the database says at the end."""
        said = self.processes.python(WORK.format(cancelled=cancelled))
        told: dict[str, Any] = json.loads(said.splitlines()[-1])
        return told

    def bodies(self) -> list[Any]:
        """What a KMA would get."""
        count = self.stage.count(self.key)
        return sorted(decode(each).body.value for each in self.stage.consume(self.key, count, Settle.ACCEPT))


# The copies were sent; it is noted that they were; the originals left.
@pytest.mark.kill
@pytest.mark.parametrize("place", ["edit-published", "edit-sent", "moved"])
def test_a_killed_worker_is_followed_by_one_that_ends_it(stage: Stage, tmp_path: Path, place: str) -> None:
    scene = Scene(stage, tmp_path)
    scene.dies(place)
    if place != "moved":
        assert stage.count(f"DLQ.{scene.key}") == 3, "no letter leaves before its copy is confirmed"
    told = scene.goes_on()
    assert (told["job"], told["skipped"], told["edits"], told["bin"]) == (
        "done",
        {"no_json": 1},
        ["done"] * 2,
        2,
    )
    assert told["items"] == {
        f"{scene.key}-A": ["given_back", ""], f"{scene.key}-B": ["given_back", ""],
        f"{scene.key}-C": ["skipped", "no_json"],
    }  # fmt: skip
    assert (stage.count(f"DLQ.{scene.key}"), stage.count("DLQ.bin")) == (1, 2)
    assert told["not_put_back"] == {"edited_copy_sent": 2}, "their copies are at the agent"
    assert scene.bodies() == ['{"sum": 9}', '{"sum": 9}']


@pytest.mark.kill
@pytest.mark.parametrize("place", ["edit-published", "edit-sent"])
def test_a_job_that_is_cancelled_after_a_kill_leaves_no_letter_twice(
    stage: Stage, tmp_path: Path, place: str
) -> None:
    scene = Scene(stage, tmp_path)
    scene.dies(place)
    told = scene.goes_on(cancelled=True)
    assert (told["job"], told["edits"], told["bin"]) == ("cancelled", ["done"] * 2, 2)
    assert (stage.count(f"DLQ.{scene.key}"), stage.count("DLQ.bin")) == (1, 2)
    assert scene.bodies() == ['{"sum": 9}'] * 2
