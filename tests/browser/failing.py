"""A house in which exactly so many failures happened: in two activations of a setting, on three servers, of
up to a dozen kinds, most of them of a few; with all that is counted of them."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from agents.models import Activation, LaunchSetting, Run
from contract.fingerprint import fingerprint, user_frame
from failures.error_groups.increments import note
from failures.error_groups.rollup import fold_all
from failures.models import (
    FailureDelta,
    FailureGroup,
    FailureProtocol,
    Fingerprint,
    FingerprintHour,
    RecoveredMessage,
)
from tests.web.factories import TRACEBACK, World

KEY = "orders-export"
SERVERS = ("srv-1", "srv-2", "srv-3")
SPOOL = UUID(int=0xFA11)
LASTED = timedelta(days=5)
# Of so many failures, how many are of a kind: the first ones are most of them.
KINDS = [
    (40, "KeyError", "'currency'", "row_of"),
    (
        25,
        "requests.exceptions.ReadTimeout",
        "HTTPSConnectionPool(host='tax.example', port=443): timed out",
        "tax_of",
    ),
    (12, "kma.agent.TemporaryUnavailable", "customer 88121 is not replicated yet", "customer_of"),
    (8, "decimal.InvalidOperation", "[<class 'decimal.ConversionSyntax'>]", "total_of"),
    (
        5,
        "UnicodeDecodeError",
        "'utf-8' codec can't decode byte 0xfc in position 18: invalid start byte",
        "name_of",
    ),
    (
        3,
        "sqlalchemy.exc.IntegrityError",
        "duplicate key value violates unique constraint «orders_pk»",
        "store",
    ),
    (2, "ValueError", "не удалось разобрать дату «31.02.2026»", "date_of"),
    (2, "AttributeError", "'NoneType' object has no attribute 'address'", "address_of"),
    (1, "ZeroDivisionError", "division by zero", "share_of"),
    (1, "IndexError", "list index out of range", "first_line_of"),
    (
        1,
        "very.long.package.name.of.a.vendor.exceptions.RemoteServiceRefusedTheRequestError",
        "E" * 300,
        "call",
    ),
]
TURN = [(kind, text, function) for share, kind, text, function in KINDS for _ in range(share)]


def failed(world: World, number: int) -> None:
    """Takes all failures of the world away first. Half of them lie in the activation before."""
    for model in (
        FailureProtocol,
        RecoveredMessage,
        FailureDelta,
        FailureGroup,
        FingerprintHour,
        Fingerprint,
    ):
        model._default_manager.all().delete()
    Run.objects.update(failed=0, temporary=0)
    setting, running = world.settings[KEY], world.activations[KEY]
    before = Activation.objects.filter(setting=setting).exclude(pk=running.pk).get()
    now = timezone.now()
    Activation.objects.filter(pk=before.pk).update(
        number=1, started_at=now - LASTED, ended_at=now - LASTED / 2, well=number == 0
    )
    Activation.objects.filter(pk=running.pk).update(number=2, started_at=now - LASTED / 2)
    runs = {}
    for activation in (before, running):
        for name in SERVERS:
            made: dict[str, Any] = {
                "handled": 30_000,
                "state": "running" if activation == running else "finished",
                "epoch": 1,
            }
            if activation == before:
                made["closed_at"] = now - LASTED / 2
            runs[activation.pk, name] = Run.objects.update_or_create(
                activation=activation, server=world.servers[name], defaults=made
            )[0]
    rows = [_row(setting, runs, (before, running), each, number) for each in range(number)]
    FailureProtocol.objects.bulk_create(rows, batch_size=2000)
    note(rows)
    fold_all(now)
    for run in runs.values():
        mine = FailureProtocol.objects.filter(run=run)
        Run.objects.filter(pk=run.pk).update(
            failed=mine.filter(temporary=False).count(), temporary=mine.filter(temporary=True).count()
        )


def _row(
    setting: LaunchSetting,
    runs: dict[tuple[UUID, str], Run],
    activations: tuple[Activation, Activation],
    each: int,
    number: int,
) -> FailureProtocol:
    """The newest first."""
    kind, text, function = TURN[each * 37 % len(TURN)]
    activation = activations[each < (number + 1) // 2]
    # One kind fails on one server only.
    name = SERVERS[0] if kind == "UnicodeDecodeError" else SERVERS[each % len(SERVERS)]
    traceback = TRACEBACK.format(kind=kind, text=text, key="currency").replace("row_of", function)
    at = timezone.now() - timedelta(seconds=7) - LASTED * 0.99 * each / max(number, 1)
    run = runs[activation.pk, name]
    return FailureProtocol(
        id=UUID(int=0xFA11_0000_0000 + each), spool=SPOOL, number=each + 1, setting=setting,
        setting_key=setting.key,
        activation=activation, activation_uuid=activation.pk, run=run, epoch=1, server=run.server,
        server_name=name,
        agent=setting.agent, agent_version="2.4.1" if activation == activations[1] else "2.4.0",
        outcome="temporary" if "Temporary" in kind else "raised", exception_type=kind, exception_text=text,
        traceback=traceback, fingerprint=fingerprint(kind, text, traceback), place=user_frame(traceback),
        temporary="Temporary" in kind, counted="Temporary" not in kind, successes_before=each % 40,
        message_key=f"ID:order-{each // 2}", queue=setting.key, destination=setting.subscribed.name,
        attempt=each % 4 + 1, delivery_count=each % 4, body_size=212, properties={"region": "north",
        "tenant": 7},
        process_id=4711, duration_seconds=0.0342, memory_peak_bytes=48_300_000, occurred_at=at,
        received_at=at + timedelta(seconds=1),
    )  # fmt: skip
