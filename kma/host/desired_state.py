"""The desired state on disk: what runs is known at the next start too, while the MA is away."""

import json
import os
from dataclasses import replace
from pathlib import Path

from contract import version_3
from contract.messages import AgentKind, DesiredRun, DesiredState
from contract.wire import ContractError, dump, load

# What may change while a run is alive; anything else of a wanted run needs it started anew.
LIVE = frozenset(
    {
        "max_attempts",
        "max_failures",
        "grace_seconds",
        "handling_timeout_seconds",
        "transaction_timeout_seconds",
        "known_attempts",
        "masked_properties",
        "carried_counts",
        "count_message_once",
        "trial_first",
        "limit_messages",
        "lease_seconds",
        "acknowledgement_timeout_seconds",
        "committed_destination",
        "rolled_back_destination",
        "dups_ok_messages",
        "dups_ok_seconds",
        "blocked_seconds",
        "retries_requested",
        "give_up_request",
    }
)


def store(path: Path, desired: DesiredState) -> None:
    """The old or the new one is there, whatever happens in between."""
    new = path.with_suffix(".new")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as stream:
        json.dump(dump(desired), stream)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def stored(path: Path, server: str) -> DesiredState | None:
    """None when there is none, or it cannot be read: then the MA is asked before anything runs."""
    try:
        found = load(DesiredState, version_3.desired(json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, ContractError):
        return None
    return found if found.server == server else None


def needs_restart(old: DesiredRun, new: DesiredRun) -> bool:
    """Whether a wanted run of the same epoch differs in what its processes were started with."""
    if old.kind is AgentKind.STANDALONE and not old.restart_seconds:
        return False  # it runs once: what was begun is ended as it was begun, rather than begun twice
    return any(
        getattr(old, name) != getattr(new, name)
        for name in DesiredRun.__dataclass_fields__
        if name not in LIVE
    )


def changed(old: DesiredRun, new: DesiredRun) -> DesiredRun:
    """The run with what may change while it is alive."""
    return replace(old, **{name: getattr(new, name) for name in LIVE})
