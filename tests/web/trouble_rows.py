"""States that a house seldom shows, on top of tests/web/factories.py: each page that tells of trouble has its
row here.

They are for tests of pages, and for looking at what people read at night.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.urls import reverse

from agents.models import (
    ComponentCondition,
    ComponentState,
    FoundPolicy,
    LaunchSetting,
    Pool,
    Server,
    SubscriptionState,
)
from alerts.models import Alert, AlertTransition, Severity
from broker.amqp.codec import encode
from console.reasons import Reason
from contract import __version__
from contract.messages import OLDEST_VERSION, VERSION
from contract.names import BROKER_ID, BYTES_IN_STREAM, NOT_CONVERTIBLE
from contract.typed import Typed
from dlq import reasons as dlq_reasons
from dlq.models import (
    Action,
    DeadLetter,
    ItemState,
    JobState,
    LetterState,
    Outcome,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    Scope,
    UndeliveredMessage,
)
from retention.models import RetentionFigure, RetentionRun, RetentionState
from tests.web.factories import World, make_letter, message_of

LONG_QUEUE = "DLQ.payments-settlement-of-marketplace-partners-eu-central-1"


def make_trouble(world: World) -> dict[str, str]:
    """Page by name, for every state that was made."""
    return {
        **_servers(world),
        **_settings(world),
        **_letters(world),
        **_jobs(world),
        **_alerts(world),
        **_retention(world),
        **_components(world),
    }


def _servers(world: World) -> dict[str, str]:
    def ago(**span: float) -> datetime:
        return world.now - timedelta(**span)

    old, new = OLDEST_VERSION - 1, VERSION + 1
    pool = Pool.objects.get(name="main")
    rows: dict[str, dict[str, Any]] = {
        "kma-too-old": {"refused_version": old, "last_seen_at": ago(hours=2), "kma_version": "0.0.9"},
        "kma-too-new": {"refused_version": new, "last_seen_at": ago(hours=2), "kma_version": "9.0.0"},
        "heard-not-obeying": {
            "last_seen_at": ago(seconds=1), "heard_since": ago(minutes=21),
            "desired_state_taken_at": ago(minutes=21),
        },
        "kma-without-broker": {"last_seen_at": ago(seconds=1), "desired_state_taken_at": ago(seconds=1)},
        "kma-with-problems": {
            "last_seen_at": ago(seconds=1), "desired_state_taken_at": ago(seconds=1), "spool_full": True,
            "spool_rows": 41, "spool_bytes": 536_870_912, "spool_limit_bytes": 536_870_912,
            "problems": [Reason("kma.module_not_imported", {
                "module": "shop.agents", "type": "ModuleNotFoundError", "text": "No module named 'shop'",
            })],
        },
    }  # fmt: skip
    for name, facts in rows.items():
        server = Server.objects.create(
            name=name, created_at=ago(days=9), **({"kma_version": __version__} | facts)
        )
        pool.servers.add(server)
        world.servers[name] = server
    run = world.runs["orders-export", "srv-1"]
    run.pk, run.server, run.connected, run.epoch = None, world.servers["kma-without-broker"], False, 9
    run.reported_at = run.server.last_seen_at
    run.save(force_insert=True)
    return {f"server {name}": reverse("admin:server", args=[name]) for name in rows}


def _settings(world: World) -> dict[str, str]:
    deep: Any = "bottom"
    for _level in range(200):
        deep = [deep]
    LaunchSetting.objects.filter(key="mail-send").update(parameters={"nested": deep})
    for key, fields in {
        "orders-archive": {
            "still_since": world.now - timedelta(minutes=17),
            "consumers": 2,
            "waiting": 1_204,
        },
        "invoices": {"unfed_since": world.now - timedelta(minutes=17), "consumers": 0, "waiting": 21},
    }.items():
        SubscriptionState.objects.create(setting=world.settings[key], seen_at=world.now, **fields)
    return {
        "setting that is withheld": "/settings/mail-send/",
        "setting whose subscription stalled": "/settings/orders-archive/",
        "setting that nobody consumes": "/settings/invoices/",
        "setting that is stopping": "/settings/stock-sync/",
        "give back to one that is stopping": "/dead-letters/stock-sync/give-back/?all=1",
        "import to one that is stopping": "/dead-letters/stock-sync/import/",
    }


def _letters(world: World) -> dict[str, str]:
    left = world.now - timedelta(days=31)
    deleted = make_letter(
        world, "invoices", "", state=LetterState.GIVEN_BACK, state_at=left, seen_at=left - timedelta(hours=5),
        body_deleted_at=world.now - timedelta(days=1), truncated=True, size=48_212, encoded=b"",
    )  # fmt: skip
    annotations = {NOT_CONVERTIBLE: Typed("string", BYTES_IN_STREAM), BROKER_ID: Typed("long", 4711)}
    undelivered = make_letter(
        world, "invoices", b"\x00\x01stream", exception_type="", fingerprint="",
        encoded=encode(message_of(b"\x00\x01stream", annotations=annotations)),
    )  # fmt: skip
    UndeliveredMessage.objects.create(
        node_id="node", queue="invoices", message_id=4711, letter_id=4712, reason=BYTES_IN_STREAM, deaths=4
    )
    compressed = {
        "_AMQ_LARGE_COMPRESSED": Typed("boolean", True),
        "_AMQ_LARGE_SIZE": Typed("long", 1_048_576),
    }
    cut = make_letter(
        world, "invoices", b"x\x9c" + bytes(300), truncated=True, size=1_048_576,
        encoded=encode(message_of(b"x\x9c" + bytes(300), properties=compressed)),
    )  # fmt: skip
    truncated = make_letter(
        world, "invoices", '{"order": 70001, "lines": [' * 40, truncated=True, size=9_000_000
    )
    for n in range(3):
        make_letter(world, "stock-sync", f'{{"item": {n}}}')
    make_letter(world, "orders-archive", '{"item": 1}')
    named = {
        "letter whose body was deleted": deleted,
        "letter that cannot be delivered": undelivered,
        "letter that was compressed": cut,
        "letter that is cut": truncated,
    }
    return {
        **{name: reverse("admin:letter", args=[letter.pk]) for name, letter in named.items()},
        "letters with deleted bodies": "/dead-letters/invoices/?state=every",
        "case with a deleted body": reverse("admin:case") + f"?key={deleted.message_key}&setting=invoices",
    }


def _jobs(world: World) -> dict[str, str]:
    """One whose letters came to every end, and one in each state that people have to do something about."""
    paused = {
        "code": "consumers_open",
        "consumers": 3,
        "servers": ["srv-1", "payments-settlement-frankfurt-2.example", "srv-3"],
    }
    setting = world.settings["stock-sync"]
    jobs: dict[str, dict[str, Any]] = {
        "paused by consumers": {"state": JobState.PAUSED, "pause_reason": paused},
        "paused by consumers of others": {"state": JobState.PAUSED, "pause_reason": paused | {"servers": []}},
        "waiting for consumers": {"state": JobState.RUNNING, "wait_reason": "stopping"},
        "waiting for a walk": {"state": JobState.RUNNING, "wait_reason": "walk"},
        "stopped for want of news": {
            "state": JobState.STOPPED, "problem": dlq_reasons.UNKNOWN(),
        },
        "failed on what others hold": {
            "state": JobState.FAILED,
            "problem": dlq_reasons.HELD(n=12, queue=LONG_QUEUE),
        },
    }  # fmt: skip
    found = {}
    for number, (name, fields) in enumerate(jobs.items(), start=1):
        job = _job(world, 9000 + number, setting, total=40, **fields)
        job.counts = {"planned": 40}
        job.save()
        found[f"job {name}"] = reverse("admin:replay", args=[job.pk])
    every = _job(world, 9000, world.settings["invoices"], state=JobState.DONE, finished_at=world.now, total=0)
    ended = _every_end(world, every)
    back = make_letter(world, "invoices", "{}")
    _item(world, every, back, ItemState.TAKEN_ELSEWHERE, Outcome.WAITING)
    found["letter that came back"] = reverse("admin:letter", args=[back.pk])
    found["letter that stayed"] = reverse("admin:letter", args=[ended[ItemState.FAILED_TO_MOVE].pk])
    found["job of every end"] = reverse("admin:replay", args=[every.pk])
    for show in ("taken_elsewhere", "unconfirmed", "unknown"):
        found[f"job of every end, {show}"] = reverse("admin:replay", args=[every.pk]) + f"?show={show}"
    return found


def _job(world: World, number: int, setting: LaunchSetting, **fields: Any) -> ReplayJob:
    begun = world.now - timedelta(minutes=5)
    return ReplayJob.objects.create(
        id=UUID(int=number), setting=setting, setting_key=setting.key, scope=Scope.SELECTION,
        action=Action.GIVE_BACK,
        by=world.people["operator"], reason="stock service answers again", created_at=begun, started_at=begun,
        planned_at=begun, paused_at=world.now - timedelta(minutes=4), **fields,
    )  # fmt: skip


WHY = {ItemState.NOT_FOUND: "gone", ItemState.FAILED_TO_MOVE: "stuck"}


def _every_end(world: World, job: ReplayJob) -> dict[ItemState, DeadLetter]:
    """A letter of each state that an item ends in."""
    ends: list[tuple[ItemState, Outcome]] = [
        *((ItemState.GIVEN_BACK, outcome) for outcome in Outcome),
        (ItemState.UNCONFIRMED, Outcome.WAITING),
        (ItemState.UNCONFIRMED, Outcome.UNKNOWN),
        *(
            (state, Outcome.WAITING)
            for state in ItemState
            if state not in (ItemState.GIVEN_BACK, ItemState.PLANNED)
        ),
    ]
    ReplaySlice.objects.create(
        job=job, number=1, first_letter_id=1, last_letter_id=2, state="checked", size=9
    )
    found = {}
    for state, outcome in ends:
        found[state] = make_letter(world, "invoices", "{}", state=LetterState.GONE)
        _item(world, job, found[state], state, outcome)
    return found


def _item(world: World, job: ReplayJob, letter: DeadLetter, state: ItemState, outcome: Outcome) -> None:
    at = world.now - timedelta(minutes=2)
    holds = state in (ItemState.GIVEN_BACK, ItemState.PLANNED)
    ReplayItem.objects.create(
        job=job, letter=letter, slice=job.slices.get(), state=state, outcome=outcome, state_at=at,
        outcome_at=at if outcome else None, released_as="" if holds else state, why=WHY.get(state, ""),
    )  # fmt: skip
    job.counts |= {name: job.counts.get(name, 0) + 1 for name in {str(state), str(outcome)} - {""}}
    job.total += 1
    job.save(update_fields=["counts", "total"])


FACTS: dict[str, tuple[str, float, dict[str, Any]]] = {
    "server_disobeying": ("heard-not-obeying", 1_260, {"server": "heard-not-obeying"}),
    "setting_withheld": ("mail-send", 1, {"setting": "mail-send", "because": "parameters_too_deep"}),
    "beat_silent": ("beat", 97, {"process": "beat"}),
    "subscription_stalled": ("orders-archive", 1_020, {"setting": "orders-archive", "waiting": 1_204,
    "consumers": 2}),
    "subscription_without_consumer": ("invoices", 1_020, {"setting": "invoices", "waiting": 21,
    "consumers": 0}),
    "kma_without_broker": ("kma-without-broker", 1, {"server": "kma-without-broker", "runs": 1}),
    "policy_drift": (
        "shop.orders", 600, {"address": "shop.orders", "differing": ["maxDeliveryAttempts",
        "redeliveryDelay"]},
    ),
    "broker_away": ("broker", 300, {"component": "broker"}),
    "redis_away": ("redis", 300, {"component": "redis"}),
    "reports_set_aside": ("srv-1", 3, {"server": "srv-1"}),
    "server_silent": ("kma-too-old", 7_200, {"server": "kma-too-old", "refused_version": OLDEST_VERSION - 1}),
}  # fmt: skip


def _alerts(world: World) -> dict[str, str]:
    found = {"alerts": "/alerts/"}
    at = world.now - timedelta(minutes=20)
    for kind, (subject, value, facts) in FACTS.items():
        alert = Alert.objects.create(
            kind=kind, subject=subject, severity=Severity.BAD, state="open", facts=facts, value=value,
            opened_at=at,
            above_since=at, server=world.servers.get(facts.get("server", "")),
            setting=world.settings.get(facts.get("setting", "")),
        )  # fmt: skip
        alert.pools.set(Pool.objects.filter(name="main"))
        AlertTransition.objects.create(alert=alert, step="opened", value=value, at=at)
        found[f"alert {kind}"] = reverse("admin:alert", args=[alert.pk])
    return found


def _retention(world: World) -> dict[str, str]:
    left = world.now - timedelta(days=40)
    for key in ("invoices", "orders-export"):
        for _n in range(3):
            make_letter(world, key, "{}", state=LetterState.GIVEN_BACK, state_at=left, seen_at=left)
    DeadLetter.objects.filter(pk=world.letters[-1].pk).update(state_at=world.now - timedelta(days=200))
    run = RetentionRun.objects.create(
        state=RetentionState.DONE,
        started_at=world.now - timedelta(minutes=9),
        ended_at=world.now,
        deleted=4_812,
    )
    for what, deleted, kept in (
        ("dead_letters", 1, {}),
        ("letter_bodies", 4_800, {"job": 2, "outcome": 1}),
        ("edited_bodies", 11, {}),
        ("protocols", 0, {"archive": 3}),
    ):
        RetentionFigure.objects.create(
            run=run, what=what, setting_key="invoices", deleted=deleted, kept_for=kept
        )
    return {"retention": "/retention/"}


def _components(world: World) -> dict[str, str]:
    for name in ("broker", "redis"):
        ComponentState.objects.create(
            name=name,
            state=ComponentCondition.DOWN,
            since=world.now - timedelta(minutes=5),
            measured_at=world.now,
        )
    destination = world.settings["orders-export"].subscribed
    FoundPolicy.objects.create(
        address=destination.name,
        found={"maxDeliveryAttempts": 3, "redeliveryDelay": 9_000},
        differing=["maxDeliveryAttempts", "redeliveryDelay"],
        seen_at=world.now,
        differs_since=world.now - timedelta(minutes=12),
    )
    return {
        "health": "/health/",
        "destinations": "/destinations/",
        "destination that was changed": f"/destinations/{destination.pk}/",
        "overview": "/",
        "servers": "/servers/",
        "settings": "/settings/",
        "dead letters": "/dead-letters/",
        "audit": "/audit/",
    }
