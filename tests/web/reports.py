"""What a KMA reports, made for tests, and the rows that it speaks of."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.utils import timezone

from agents.models import Activation, Destination, LaunchSetting, Pool, ProvisionState, Run, Server
from agents.servers.admission import issue_server_token
from console.models import ApiToken
from contract.messages import Record, RecordBatch
from contract.records import KIND_OF as KIND_NAMES
from contract.records import (
    BreakerCounts,
    Closing,
    Content,
    Interruption,
    MessageIdentity,
    MinuteFigures,
    Protocol,
    RecordRun,
    Recovered,
    ReplayOutcome,
    RunState,
)
from contract.wire import dump

AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def server(name: str = "srv-1") -> Server:
    return Server.objects.get_or_create(name=name)[0]


def setting(key: str = "orders", **fields: Any) -> LaunchSetting:
    pool = Pool.objects.get_or_create(name="demo")[0]
    destination = Destination.objects.get_or_create(name=f"t.{key}")[0]
    wish = {"agent": "demo.scripted", "pool": pool, "destination": destination, "enabled": True}
    wish |= {"provision_state": ProvisionState.READY}
    return LaunchSetting.objects.create(key=key, **(wish | fields))


def run(of: LaunchSetting, on: Server) -> Run:
    activation = Activation.objects.filter(setting=of).first() or Activation.objects.create(setting=of)
    return Run.objects.create(activation=activation, server=on, epoch=1)


def run_of(row: Run) -> RecordRun:
    made_for = row.activation.setting
    return RecordRun(made_for.key, row.activation_id, row.epoch, row.server.name, made_for.agent, "1")


def message(key: str = "ID:1", attempt: int = 1, **fields: Any) -> MessageIdentity:
    known: dict[str, Any] = {
        "queue": "orders",
        "destination": "t.orders",
        "delivery_count": attempt - 1,
        "body_size": 7,
    }
    return MessageIdentity(key=key, attempt=attempt, **(known | fields))


def protocol(of: RecordRun, about: MessageIdentity | None = None, **fields: Any) -> Protocol:
    known: dict[str, Any] = {
        "outcome": "raised", "exception_type": "builtins.KeyError", "exception_text": "'sum'",
        "traceback": "Traceback (most recent call last):\n"
                     '  File "orders.py", line 3, in handle\n'
                     "KeyError: 'sum'\n",
        "fingerprint": "v1:0123456789abcdef", "place": "orders.py:handle", "occurred_at": AT,
    }  # fmt: skip
    return Protocol(run=of, message=about or message(), **(known | fields))


def recovered(
    of: RecordRun, about: MessageIdentity | None = None, occurred_at: datetime = AT + timedelta(seconds=5)
) -> Recovered:
    return Recovered(run=of, message=about or message(attempt=2), occurred_at=occurred_at)


def replay_outcome(
    of: RecordRun,
    about: MessageIdentity,
    result: str = "handled",
    occurred_at: datetime = AT + timedelta(minutes=5),
) -> ReplayOutcome:
    return ReplayOutcome(run=of, message=about, result=result, occurred_at=occurred_at)


def interruption(of: RecordRun, **fields: Any) -> Interruption:
    known: dict[str, Any] = {
        "counts": BreakerCounts("builtins.KeyError", 3, 3), "reason": "same_type", "max_failures": 10,
        "occurred_at": AT,
        "evidence": (uuid.uuid4(), uuid.uuid4(), uuid.uuid4()),
    }  # fmt: skip
    return Interruption(run=of, **(known | fields))


def minute_figures(of: RecordRun, at: datetime = AT, **fields: Any) -> MinuteFigures:
    """Of the minute that begins at `at`: 8 successes, 2 failures."""
    known: dict[str, Any] = {
        "until": at + timedelta(minutes=1), "succeeded": 8, "failed": 2, "recovered": 1, "bytes": 700,
        "busy_seconds": 2.5, "processing": "20:8 24:2", "critical": "30:8",
        "concurrency": 4, "children_bytes": 1000,
    }  # fmt: skip
    return MinuteFigures(run=of, occurred_at=at, **(known | fields))


def closing(of: RecordRun, records: int, **fields: Any) -> Closing:
    totals: dict[str, Any] = {
        "state": RunState.FINISHED,
        "handled": 5,
        "failed": 1,
        "temporary": 0,
        "restarts": 0,
    }
    return Closing(run=of, records=records, occurred_at=AT + timedelta(hours=1), **(totals | fields))


class Spool:
    """Numbers records as a KMA's spool does."""

    def __init__(self, name: str = "srv-1") -> None:
        self.server, self.id, self.number = name, uuid.uuid4(), 0

    def record(self, content: Content) -> Record:
        self.number += 1
        data = dump(content)
        assert isinstance(data, dict)
        return Record(self.number, uuid.uuid4(), KIND_NAMES[type(content)], data)

    def batch(self, *contents: Content) -> RecordBatch:
        return RecordBatch(self.server, self.id, tuple(self.record(content) for content in contents))


def bearer_of_server(row: Server) -> dict[str, Any]:
    return {"Authorization": f"Bearer {issue_server_token(row, now=timezone.now())}"}


def person(name: str, *permissions: str) -> User:
    """A member of the staff with `app.codename` permissions."""
    user = User.objects.create_user(name, password=None, is_staff=True)
    for permission in permissions:
        app, codename = permission.split(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    return user


def bearer_of(user: User) -> dict[str, Any]:
    return {"Authorization": f"Bearer {ApiToken.issue(user, 'test', now=timezone.now())}"}


def without_id(answer: Any) -> dict[str, Any]:
    """What a refusal says, but for the id of its line in the log."""
    return {name: value for name, value in answer.json().items() if name != "id"}
