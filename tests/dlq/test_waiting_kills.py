"""Workers that are killed while they try, kill, hold and release waiting messages: each message once, none
lost."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from broker.management import waiting_messages
from broker.management.desired_topology import hold_topology
from broker.management.topology import apply
from broker.port import Message, Settle
from contract.names import hold_queue
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed
from tests.broker.houses import eventually
from tests.dlq.processes import Processes
from tests.dlq.stage import DLA, Stage

pytestmark = pytest.mark.kill

HOURS = RedeliveryPolicy(max_attempts=5, delay=3_600_000)
PLACES = (
    "waiting_planned", "waiting_before_act", "waiting_before_one", "waiting_after_one", "waiting_after_act",
    "waiting_looked_up", "waiting_before_end",
)  # fmt: skip
EACH = 2

# In one process, as each start of one takes seconds: a child of it is killed at each place, another goes on.
# Each is asked for two messages; what the broker holds all together is counted after each death and at the
# end.
KILLED_AT_EACH_PLACE = """
import os, time
from django.db import connections
from django.utils import timezone
from console.processes import NamedLock
from console.broker import management
from console.operations.operation import perform
from broker.management import waiting_messages
from broker.port import ManagementFailed
from dlq.models import WaitingAction
from dlq.models.message_action import OPEN_ACTIONS
from dlq.subscriptions.requests import Selection
from dlq.subscriptions.operations import BY_KIND
from tests.dlq.jobs import run_waiting
from tests.web import reports

key, kind, part, places, most, listed = {arguments!r}
waiting_messages.LISTED = listed
setting = reports.setting(key)

def count(queue, attribute="MessageCount"):
    try:
        return int(management().attribute("queue." + queue, attribute))
    except ManagementFailed:
        return 0

def all_there_is():
    return count(key) + count({hold!r}) + count("DLQ." + key)

def run(pk):
    WaitingAction.objects.update(lease_until=None)
    NamedLock.objects.update(held_until=timezone.now())
    run_waiting(str(pk))

for place in places:
    chosen = Selection(part, None, most)
    action = perform(BY_KIND[kind], setting, None, chosen=chosen, reason="why").made
    connections.close_all()
    child = os.fork()
    if not child:
        os.environ["MA_CRASH_AT"], os.environ["MA_TEST_CRASHES"] = place, "1"
        while True:
            run(action.pk)
            time.sleep(0.05)
    died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    between = all_there_is()
    while WaitingAction.objects.filter(pk=action.pk, state__in=OPEN_ACTIONS).exists():
        run(action.pk)
        time.sleep(0.05)
    action.refresh_from_db()
    fates = sorted(set(action.items.values_list("fate", flat=True)))
    print("TOLD", place, died, between, all_there_is(), action.state, action.counts, fates, sep="|")
"""


@pytest.fixture
def processes(tmp_path: Path, stage: Stage) -> Processes:
    return Processes(tmp_path, stage)


def prepare(stage: Stage, part: str, count: int) -> str:
    """A subscription with so many messages in that part."""
    key = stage.key("k")
    stage.add(key, f"t.{key}", HOURS)
    names = [f"{key}-{number}" for number in range(count)]
    stage.publish(
        f"t.{key}", *(Message(body=Typed("string", name), message_id=Typed("string", name)) for name in names)
    )
    eventually(lambda: stage.count(key) == count)
    if part == "delayed":
        stage.consume(key, count, Settle.FAIL)
        eventually(lambda: int(stage.management.attribute(f"queue.{key}", "ScheduledCount")) == count)
    if part == "held":
        apply(stage.management, hold_topology(key, DLA))
        for row in waiting_messages.first_waiting(stage.management, key):
            waiting_messages.move(stage.management, key, int(row["messageID"]), hold_queue(key))
    return key


def told(
    processes: Processes, key: str, kind: str, part: str, places: tuple[str, ...], listed: int
) -> list[list[str]]:
    arguments = (key, kind, part, places, EACH, listed)
    code = KILLED_AT_EACH_PLACE.format(arguments=arguments, hold=hold_queue(key))
    # What was sent to the dead letters is known to be there when the index knows it.
    with processes.feed() if kind == "to_dlq" else nullcontext():
        output = processes.python(code)
    return [line.split("|")[1:] for line in output.splitlines() if line.startswith("TOLD")]


@pytest.mark.parametrize(
    ("kind", "part"),
    [("try_now", "delayed"), ("to_dlq", "waiting"), ("hold", "delayed"), ("release", "held")],
)
def test_a_worker_killed_at_any_step_does_each_message_once(
    stage: Stage, processes: Processes, kind: str, part: str
) -> None:
    total = EACH * len(PLACES)
    key = prepare(stage, part, total)
    lines = told(processes, key, kind, part, PLACES, waiting_messages.LISTED)
    wanted = [[place, "77", str(total), str(total), "done", "{'done': 2}", "['done']"] for place in PLACES]
    assert lines == wanted
    there = {"try_now": key, "to_dlq": f"DLQ.{key}", "hold": hold_queue(key), "release": key}[kind]
    address = {"to_dlq": DLA, "hold": "MA.hold"}.get(kind, f"t.{key}")
    assert len(set(stage.ids(there, address))) == total


def test_a_worker_killed_while_it_ends_every_delay_ends_it_once(stage: Stage, processes: Processes) -> None:
    key = prepare(stage, "delayed", 4)
    (line,) = told(processes, key, "try_now", "delayed", ("waiting_after_all",), 1)
    assert line == ["waiting_after_all", "77", "4", "4", "done", "{'done': 4, 'stayed': 0}", "[]"]
    assert len(set(stage.ids(key, f"t.{key}"))) == 4
