"""Rows as a house has them after a busy morning: for tests of pages and for looking at them
(browser/look.py)."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group, User
from django.utils import timezone

from agents.models import (
    Activation,
    ActivationState,
    Destination,
    LaunchSetting,
    OfferedAgent,
    Pool,
    ProvisionState,
    Run,
    RunPhase,
    Server,
    StateChange,
)
from agents.reasons import EPOCH
from alerts.models import Alert
from broker.amqp.codec import encode
from broker.port import BodyKind, Message
from console.processes import record_heartbeat
from console.reasons import said
from contract import __version__
from contract.fingerprint import fingerprint, user_frame
from contract.typed import Typed, to_json
from dlq.models import (
    DeadLetter,
    ItemState,
    JobState,
    LetterReport,
    LetterState,
    Outcome,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    Scope,
)
from dlq.models.message_action import WaitingAction
from dlq.search.word_index import catch_up
from failures.error_groups.increments import note
from failures.error_groups.rollup import fold_all
from failures.models import FailureProtocol, RecoveredMessage
from tests.web.alert_rows import make_alerts
from tests.web.crowd import make_crowd
from tests.web.launches import Launches, make_launches
from tests.web.rows import make_roles
from tests.web.waiting_rows import make_action

PASSWORD = "correct horse battery"
SPOOL = UUID(int=77)
NODE = "9f1c2c5a-5b8e-11f0-9d5a-0242ac120002"
HOSTILE = "<script>alert(1)</script>\u202etxt.exe\u202c\x00\x1b[31mred <img src=x onerror=alert(2)> \ufeff"

TRACEBACK = """Traceback (most recent call last):
  File "/opt/ma/kma/child.py", line 212, in handle
    agent.run_agent(message, context)
  File "/srv/agents/orders/export.py", line 48, in run_agent
    row = self.row_of(order)
          ^^^^^^^^^^^^^^^^^^
  File "/srv/agents/orders/export.py", line 71, in row_of
    return {{"total": order["total"], "currency": order[{key!r}]}}
                                                 ~~~~~^^^^^^^^^^^^
{kind}: {text}
"""


@dataclass
class World:
    """What was made, by name."""

    now: datetime
    people: dict[str, User] = field(default_factory=dict)
    servers: dict[str, Server] = field(default_factory=dict)
    settings: dict[str, LaunchSetting] = field(default_factory=dict)
    activations: dict[str, Activation] = field(default_factory=dict)
    runs: dict[tuple[str, str], Run] = field(default_factory=dict)
    protocols: list[FailureProtocol] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    job: ReplayJob | None = None
    waiting: WaitingAction | None = None
    launches: Launches | None = None
    alert: Alert | None = None
    dice: Random = field(default_factory=lambda: Random(7))
    number: int = 0


def make_people() -> dict[str, User]:
    """An operator, a viewer, and an outsider who may sign in and nothing else."""
    make_roles()
    people = {
        name: User.objects.create_user(name, password=PASSWORD, is_staff=True)
        for name in ("operator", "viewer", "outsider")
    }
    people["operator"].groups.add(Group.objects.get(name="operator"))
    people["viewer"].groups.add(Group.objects.get(name="viewer"))
    people["chief"] = User.objects.create_superuser("chief", password=PASSWORD)
    return people


def make_world(
    now: datetime | None = None, *, letters: int = 60, crowd: int = 0, crowd_letters: int = 0
) -> World:
    """`crowd` adds so many settings, and `crowd_letters` so many dead letters of theirs."""
    world = World(now or timezone.now(), people=make_people())
    _servers(world)
    _settings(world)
    _activations(world)
    world.launches = make_launches(world)
    world.alert = make_alerts(world)
    _protocols(world)
    _letters(world, letters)
    catch_up(letters + 10)
    _replay(world)
    make_crowd(world, crowd, crowd_letters)
    world.waiting = make_action(
        world.settings["orders-export"], world.people["operator"], world.now, HOSTILE.replace("\x00", "")
    )
    for name in ("beat", "feed"):
        record_heartbeat(name, world.now - timedelta(seconds=3))
    return world


def _servers(world: World) -> None:
    seen = {"srv-1": 1, "srv-2": 2, "srv-3": 1, "srv-4": 127}
    agents = ("demo.orders", "demo.invoices", "orders.export", "stock.sync", "mail.send")
    for name, seconds in seen.items():
        server = Server.objects.create(
            name=name,
            created_at=world.now - timedelta(days=40),
            last_seen_at=world.now - timedelta(seconds=seconds),
            kma_version=__version__,
            clock_skew_seconds=0.02,
            spool_limit_bytes=536_870_912,
            spool_rows=3 if name == "srv-4" else 0,
            spool_bytes=9_412 if name == "srv-4" else 0,
        )
        for agent in agents:
            OfferedAgent.objects.create(
                server=server, name=agent, kind="message", version="2.4.1", summary="Sample."
            )
        world.servers[name] = server
    Server.objects.create(name="srv-5", created_at=world.now - timedelta(hours=1))
    pool = Pool.objects.create(name="main", description="Both halls")
    pool.servers.set(world.servers.values())
    Pool.objects.create(name="north").servers.set([world.servers["srv-1"], world.servers["srv-2"]])


def _settings(world: World) -> None:
    rows: list[tuple[str, str, str, str, dict[str, Any]]] = [
        ("orders-export", "orders.export", "shop.orders", "MANY", {"concurrency": 4, "enabled": True}),
        ("orders-archive", "demo.orders", "shop.orders", "ANY", {"enabled": True}),
        (
            "invoices",
            "demo.invoices",
            "shop.invoices",
            "MANY",
            {"enabled": True, "mode": "AUTO", "breaker_m": 40},
        ),
        (
            "stock-sync",
            "stock.sync",
            "warehouse.stock",
            "ANY",
            {"enabled": False, "disabled_reason": said("supplier moves house")},
        ),
        (
            "mail-send",
            "mail.send",
            "mail.outgoing",
            "ANY",
            {"enabled": True, "description": "Letters to customers"},
        ),
        ("prices-import", "prices.import", "shop.prices", "ANY", {"provision_state": ProvisionState.FAILED}),
    ]
    for index, (key, agent, address, spread, values) in enumerate(rows):
        destination, _made = Destination.objects.get_or_create(
            name=address,
            defaults={"max_attempts": 4 if address == "shop.orders" else 10, "collision_avoidance": 0.15},
        )
        provision = values.pop("provision_state", ProvisionState.READY)
        problem = (
            "AMQ229204: address shop.prices exists as ANYCAST" if provision == ProvisionState.FAILED else ""
        )
        pool = Pool.objects.get(name="main" if spread == "MANY" else "north")
        world.settings[key] = LaunchSetting.objects.create(
            key=key, agent=agent, spread=spread, pool=pool, destination=destination,
            provision_state=provision,
            provision_problem=problem, provisioned_hash="h", wanted_hash="h",
            state_since=world.now - timedelta(hours=2 + 5 * index),
            provisioned_at=world.now - timedelta(days=3),
            disabled_by=world.people["operator"] if values.get("disabled_reason") else None, **values,
        )  # fmt: skip


def _activations(world: World) -> None:
    homes = {
        "orders-export": ("srv-1", "srv-2", "srv-3", "srv-4"),
        "orders-archive": ("srv-2",),
        "invoices": ("srv-1", "srv-2", "srv-3"),
        "mail-send": ("srv-1",),
    }
    for key, names in homes.items():
        setting = world.settings[key]
        earlier = Activation.objects.create(
            setting=setting,
            state=ActivationState.STOPPED,
            started_by=world.people["operator"],
            started_at=world.now - timedelta(days=2),
            ended_at=world.now - timedelta(days=1, hours=3),
        )
        activation = Activation.objects.create(
            setting=setting,
            state=ActivationState.RUNNING,
            started_by=world.people["operator"],
            started_at=setting.state_since,
            last_epoch=len(names),
        )
        world.activations[key] = activation
        StateChange.objects.create(
            setting=setting, activation=earlier, what="setting", old="enabled", new="disabled",
            by=world.people["operator"], at=world.now - timedelta(days=1, hours=3),
            reason=said("new version of the agent"),
        )  # fmt: skip
        StateChange.objects.create(
            setting=setting, activation=activation, what="setting", old="disabled", new="enabled",
            by=world.people["operator"], at=setting.state_since,
        )  # fmt: skip
        for epoch, name in enumerate(names, start=1):
            world.runs[key, name] = _run(world, activation, name, epoch)


def _run(world: World, activation: Activation, name: str, epoch: int) -> Run:
    StateChange.objects.create(
        setting=activation.setting, activation=activation, server=world.servers[name], what="run",
        new="wanted",
        at=activation.started_at + timedelta(seconds=1), reason=EPOCH(n=epoch),
    )  # fmt: skip
    silent = name == "srv-4"
    return Run.objects.create(
        activation=activation,
        server=world.servers[name],
        epoch=epoch,
        state=RunPhase.RUNNING,
        handled=world.dice.randrange(8_000, 60_000),
        recovered=world.dice.randrange(20, 300),
        restarts=world.dice.randrange(20, 90),
        in_progress=0 if silent else world.dice.randrange(1, 5),
        connected=not silent,
        same_type="KeyError" if activation.setting.key == "orders-export" else "",
        same_count=2 if activation.setting.key == "orders-export" else 0,
        any_count=4 if activation.setting.key == "orders-export" else 0,
        reported_at=world.servers[name].last_seen_at,
        created_at=activation.started_at,
    )


FAILURES = [
    ("orders-export", "KeyError", "'currency'", 46, False),
    ("orders-export", "signal:SIGSEGV", "the process was ended by SIGSEGV", 4, False),
    ("orders-export", "kma.agent.TemporaryUnavailable", "customer 88121 is not replicated yet", 19, True),
    (
        "invoices",
        "requests.exceptions.ConnectionError",
        "HTTPSConnectionPool(host='tax.example', port=443)",
        31,
        True,
    ),
    ("invoices", "kma.agent.InvalidMessage", "not JSON: line 1 column 1", 9, False),
    ("mail-send", "ValueError", HOSTILE, 3, False),
    ("returns", "IndexError", "list index out of range", 7, False),
]


def _protocols(world: World) -> None:
    for key, kind, text, count, temporary in FAILURES:
        names = [name for setting, name in world.runs if setting == key]
        for index in range(count):
            attempt = index % 4 + 1
            world.protocols.append(
                _protocol(world, key, names[index % len(names)], kind, text, temporary, index, attempt)
            )
    FailureProtocol.objects.bulk_create(world.protocols)
    note(world.protocols)
    fold_all(world.now)
    for run in world.runs.values():
        run.failed = FailureProtocol.objects.filter(run=run, temporary=False).count()
        run.temporary = FailureProtocol.objects.filter(run=run, temporary=True).count()
        run.save()


def _protocol(
    world: World, key: str, server: str, kind: str, text: str, temporary: bool, index: int, attempt: int
) -> FailureProtocol:
    world.number += 1
    setting, activation = world.settings[key], world.activations[key]
    died = kind.startswith("signal:")
    stored = text.replace("\x00", "\u2400")
    traceback = "" if died else TRACEBACK.format(kind=kind, text=stored, key="currency")
    outcome = (
        "child_died" if died else "temporary" if temporary else "invalid" if "Invalid" in kind else "raised"
    )
    at = world.now - timedelta(seconds=12 + 61 * index)
    return FailureProtocol(
        id=UUID(int=world.number),
        spool=SPOOL,
        number=world.number,
        setting=setting,
        setting_key=key,
        activation=activation,
        activation_uuid=activation.pk,
        run=world.runs[key, server],
        epoch=1,
        server=world.servers[server],
        server_name=server,
        agent=setting.agent,
        agent_version="2.4.1",
        outcome=outcome,
        exception_type=kind,
        exception_text=stored,
        traceback=traceback,
        fingerprint=fingerprint(kind, stored, traceback),
        place=user_frame(traceback),
        temporary=temporary,
        counted=not temporary,
        last_attempt=attempt == setting.subscribed.max_attempts or outcome == "invalid",
        successes_before=17 + index,
        message_key=f"ID:{key}-{index // 4}",
        queue=key,
        destination=setting.subscribed.name,
        attempt=attempt,
        delivery_count=attempt - 1,
        body_digest="sha256:9b74c9897bac770ffc029102a200c5de",
        body_size=212,
        properties={"region": "north", "tenant": 7, "trace": "00-4bf92f35"},
        process_id=4711,
        duration_seconds=0.0342,
        occurred_at=at,
        received_at=at + timedelta(seconds=1),
    )


def message_of(body: Any, **options: Any) -> Message:
    """A text message as a STOMP publisher sends it; bytes become a data section."""
    if isinstance(body, bytes):
        return Message(body=Typed("binary", body), body_kind=BodyKind.DATA, **options)
    return Message(body=Typed("string", body), **options)


def make_letter(world: World, key: str, body: Any, **values: Any) -> DeadLetter:
    """A dead letter with everything the feed would have read from it."""
    world.number += 1
    properties = {
        "region": Typed("string", "north"),
        "tenant": Typed("int", 7),
        "amount": Typed("double", 99.5),
        "urgent": Typed("boolean", False),
        "traced": Typed("uuid", "0b5c1a52-8d5c-4bb8-9a40-3b1f3c0e1d11"),
        "_AMQ_ORIG_QUEUE": Typed("string", key),
    }
    text = body if isinstance(body, str) else ""
    encoded = values.pop("encoded", None) or encode(
        message_of(body, properties=properties, message_id=Typed("string", f"ID:{key}-{world.number}"))
    )
    setting = world.settings.get(key)
    defaults: dict[str, Any] = {
        "node_id": NODE,
        "queue": f"DLQ.{key}",
        "orig_message_id": 1_000_000 + world.number,
        "setting": setting,
        "setting_key": key if setting else "",
        "address": setting.subscribed.name if setting else "old.address",
        "orig_queue": key,
        "message_key": f"ID:{key}-{world.number}",
        "message_id": f"ID:{key}-{world.number}",
        "encoded": encoded,
        "body_text": text[:4096].replace("\x00", "\u2400"),
        "body_kind": "value" if isinstance(body, str) else "data",
        "jms_kind": 5 if isinstance(body, str) else 3,
        "size": len(encoded),
        "properties": [{"name": name, **to_json(value)} for name, value in properties.items()],
        "annotations": [{"name": "x-opt-jms-dest", "type": "byte", "value": 1}],
        "created_at_producer": world.now - timedelta(hours=9),
        "delivery_count": 4,
        "exception_type": "KeyError",
        "fingerprint": "v1:0123456789abcdef",
        "seen_at": world.now - timedelta(hours=3),
        "state_at": world.now - timedelta(hours=3),
    }
    letter = DeadLetter.objects.create(**(defaults | values))
    world.letters.append(letter)
    return letter


def _letters(world: World, count: int) -> None:
    of_key_error = next(each for each in world.protocols if each.exception_type == "KeyError").fingerprint
    for index in range(count):
        order = {
            "order": 70_000 + index,
            "customer": "Ann & Söhne",
            "lines": [{"sku": "A-1", "n": 2, "price": 19.90}],
        }
        at = world.now - timedelta(minutes=3 + 7 * (count - index))
        make_letter(
            world, "orders-export", json.dumps(order, ensure_ascii=False), seen_at=at, state_at=at,
            fingerprint=of_key_error, message_key=f"ID:orders-export-{index}",
        )  # fmt: skip
    make_letter(
        world, "invoices", "<invoice no='47'><total currency='EUR'>12.50</total></invoice>", durable=False,
        exception_type="kma.agent.InvalidMessage", fingerprint="v1:1111111111111111",
    )  # fmt: skip
    make_letter(world, "invoices", bytes(range(256)), exception_type="", fingerprint="")
    make_letter(world, "mail-send", HOSTILE.replace("\x00", ""), exception_type="ValueError")
    make_letter(world, "unknown", "nobody's", orig_queue="forgotten", exception_type="", fingerprint="")


def _replay(world: World) -> None:
    setting = world.settings["orders-export"]
    given = [letter for letter in world.letters if letter.setting_key == setting.key][:20]
    job = ReplayJob.objects.create(
        id=UUID(int=4242), setting=setting, setting_key=setting.key, scope=Scope.SELECTION,
        state=JobState.RUNNING,
        by=world.people["operator"], reason="export 2.4.1 reads orders without a currency", total=len(given),
        created_at=world.now - timedelta(minutes=2), started_at=world.now - timedelta(minutes=2),
        planned_at=world.now - timedelta(minutes=2),
    )  # fmt: skip
    part = ReplaySlice.objects.create(
        job=job,
        number=1,
        first_letter_id=given[0].pk,
        last_letter_id=given[-1].pk,
        state="checked",
        size=len(given),
    )
    outcomes = (
        [Outcome.HANDLED] * 11 + [Outcome.FAILED_AGAIN] * 2 + [Outcome.DEAD_AGAIN] + [Outcome.WAITING] * 6
    )
    for letter, outcome in zip(given, outcomes, strict=True):
        moved = outcome is not Outcome.WAITING or letter.pk % 2 == 0
        ReplayItem.objects.create(
            job=job, letter=letter, slice=part, state=ItemState.GIVEN_BACK if moved else ItemState.PLANNED,
            outcome=outcome, outcome_at=world.now - timedelta(minutes=1) if outcome else None,
            state_at=world.now - timedelta(minutes=2),
        )  # fmt: skip
        if moved:
            letter.state, letter.state_at = LetterState.GIVEN_BACK, world.now - timedelta(minutes=2)
            letter.save(update_fields=["state", "state_at"])
    first = given[0]
    LetterReport.objects.create(
        id=UUID(int=1), setting_key=setting.key, message_key=first.message_key, result="handled",
        activation_uuid=world.activations[setting.key].pk, server_name="srv-1", attempt=1, letter_id=5,
        occurred_at=world.now - timedelta(minutes=1),
    )  # fmt: skip
    RecoveredMessage.objects.create(
        id=UUID(int=1), setting_key=setting.key, message_key="ID:orders-export-2", attempt=3,
        server_name="srv-2",
        activation_uuid=world.activations[setting.key].pk, occurred_at=world.now - timedelta(minutes=4),
    )  # fmt: skip
    world.job = job
