"""What one server shall run, from the rows."""

import hashlib
import json

from agents import known_attempts
from agents.models import Run, Server
from agents.models.activation import OPEN_ACTIVATIONS
from contract import wire
from contract.messages import AgentKind, DesiredRun, DesiredState, Mode


def desired_state(server: Server) -> DesiredState:
    """`version` is a hash of the content: it changes exactly when the content does."""
    wanted = Run.objects.filter(
        server=server, wanted=True, activation__state__in=OPEN_ACTIVATIONS, activation__setting__enabled=True
    )
    rows = wanted.select_related("activation__setting__destination").order_by("activation__setting__key", "epoch")
    runs = tuple(_desired_run(run) for run in rows)
    content = json.dumps([wire.dump(run) for run in runs], sort_keys=True, ensure_ascii=True)
    version = hashlib.sha256(f"{server.name}\n{content}".encode()).hexdigest()[:32]
    return DesiredState(server=server.name, version=version, runs=runs)


def _desired_run(run: Run) -> DesiredRun:
    setting = run.activation.setting
    return DesiredRun(
        activation=run.activation_id,
        epoch=run.epoch,
        setting=setting.key,
        agent=setting.agent,
        kind=AgentKind(setting.kind),
        destination=setting.subscribed.name if setting.takes_messages else "",
        queue=setting.key if setting.takes_messages else "",
        mode=Mode(setting.mode),
        concurrency=setting.concurrency,
        max_attempts=setting.subscribed.max_attempts if setting.takes_messages else 1,
        breaker_m=setting.breaker_m,
        grace_seconds=setting.grace_seconds,
        handling_timeout_seconds=setting.handling_timeout_seconds,
        transaction_timeout_seconds=setting.transaction_timeout_seconds,
        isolate=setting.isolate,
        child_memory_mb=setting.child_memory_mb,
        parameters=setting.parameters,
        known_attempts=known_attempts.of(setting),
        masked_properties=tuple(setting.masked_properties),
    )
