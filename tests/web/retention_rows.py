"""Activations with protocols, made for tests of retention."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from agents.models import Activation, LaunchSetting, Pool, Run, Server
from console.jobs.engine import claim
from failures.models import FailureProtocol, RecoveredMessage
from retention import batches
from retention.models import RetentionRun
from retention.run_ledger import Claim, open_run
from retention.worker import RetentionWorker
from tests.web.rows import make_setting

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def of_today(days_ago: float) -> float:
    """So many days before this moment, in days before NOW: for what asks the clock."""
    return days_ago - (timezone.now() - NOW) / DAY


def activation(
    setting: LaunchSetting,
    days_ago: float,
    *,
    well: bool | None = None,
    going_on: bool = False,
    lasted: float = 1,
) -> Activation:
    """Started so many days before NOW."""
    started = NOW - days_ago * DAY
    before = Activation.objects.filter(setting=setting).count()
    return Activation.objects.create(
        setting=setting,
        state="running" if going_on else "succeeded" if well else "failed",
        started_at=started,
        ended_at=None if going_on else started + lasted * DAY,
        well=None if going_on else bool(well),
        number=before + 1,
    )


def protocols(of: Activation | None, count: int, days_ago: float, **fields: Any) -> list[FailureProtocol]:
    """Each of a message of its own; `of`: None is an activation that nobody knows."""
    at = NOW - days_ago * DAY
    server = Server.objects.get_or_create(name="srv-1")[0]
    spool = uuid4()
    setting = of.setting if of else None
    rows = [
        FailureProtocol(
            **{
                "id": uuid4(), "spool": spool, "number": number, "setting": setting,
                "setting_key": setting.key if setting else "gone", "activation": of,
                "activation_uuid": of.pk if of else UUID(int=77), "epoch": 1, "server": server,
                "server_name": server.name, "agent": "demo.orders", "outcome": "raised",
                "exception_type": "KeyError",
                "fingerprint": "v1:0123456789abcdef", "message_key": f"ID:{spool}-{number}",
                "occurred_at": at,
                "received_at": at, **fields,
            }
        )
        for number in range(1, count + 1)
    ]  # fmt: skip
    return FailureProtocol.objects.bulk_create(rows)


def recoveries(of: Sequence[FailureProtocol], days_ago: float | None = None) -> None:
    for each in of:
        at = each.occurred_at + timedelta(seconds=5) if days_ago is None else NOW - days_ago * DAY
        RecoveredMessage.objects.create(
            id=uuid4(), setting_key=each.setting_key, activation_uuid=each.activation_uuid,
            server_name="srv-1",
            message_key=each.message_key, attempt=2, occurred_at=at, received_at=at,
        )  # fmt: skip


def run_of(of: Activation) -> Run:
    server = Server.objects.get_or_create(name="srv-1")[0]
    return Run.objects.create(activation=of, server=server, epoch=1, state="finished", closed_at=of.ended_at)


def left() -> dict[str, int]:
    """{activation: how many protocols are left of it}"""
    found: dict[str, int] = {}
    for pk in FailureProtocol.objects.values_list("activation_uuid", flat=True):
        found[str(pk)] = found.get(str(pk), 0) + 1
    return found


def house(pool: Pool, counts: Mapping[str, int], days_ago: float = 5) -> dict[str, Activation]:
    """Settings with one activation each that finished well, all of the same time, and so many protocols."""
    made = {key: activation(make_setting(pool, key), days_ago, well=True) for key in counts}
    for key, count in counts.items():
        protocols(made[key], count, days_ago)
    return made


def after_the_first(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Between the first chunk and the next."""
    seen: list[float] = []

    def let_in(took: float) -> None:
        seen.append(took)
        if len(seen) == 1:
            act()

    monkeypatch.setattr(batches, "let_others_write", let_in)


def told(run: RetentionRun) -> dict[tuple[str, str, str], int]:
    """{(what, setting, rule): how many were deleted}"""
    return {(row.what, row.setting_key, row.rule): row.deleted for row in run.figures.all()}


def take_turn(now: datetime) -> Claim | None:
    """A worker's hold on the run, which begins if there is none."""
    run = open_run(now, every=timedelta(0))
    taken = claim(RetentionWorker(now, 20.0), run.pk, now) if run else None
    return Claim(taken) if taken else None
