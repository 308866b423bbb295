"""Describes what a batch brought, added as rows of its own: no intake waits for a count that another one
changes."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from console.database import bulk
from contract.fingerprint import normalised
from failures.models import FailureDelta, FailureProtocol

# As long as hours are kept. A clock that says otherwise is not believed: then the receipt counts.
BELIEVED = timedelta(days=90)

# Setting, activation, server, fingerprint, hour, version of the agent.
Key = tuple[str, UUID, str, str, datetime, str]


def note(protocols: Iterable[FailureProtocol]) -> None:
    """Called in the transaction that stores `protocols`: both are there, or neither."""
    bulk.insert_rows(deltas(protocols))


def deltas(protocols: Iterable[FailureProtocol]) -> list[FailureDelta]:
    found: dict[Key, FailureDelta] = {}
    latest: dict[Key, str] = {}
    for protocol in protocols:
        at = moment(protocol)
        hour = at.replace(minute=0, second=0, microsecond=0)
        of, server, version = protocol.activation_uuid, protocol.server_name, protocol.agent_version
        key = (protocol.setting_key, of, server, protocol.fingerprint, hour, version)
        delta = found.get(key)
        if delta is None:
            delta = found[key] = _delta(protocol, at, hour)
        delta.count += 1
        delta.temporary = delta.temporary and protocol.temporary
        delta.first_at = min(delta.first_at, at)
        if at >= delta.last_at:
            delta.last_at, delta.latest, latest[key] = at, protocol.pk, protocol.exception_text
    for key, text in latest.items():
        found[key].headline = normalised(text)
    return list(found.values())


def moment(protocol: FailureProtocol) -> datetime:
    """Returns when it occurred, by the server's clock where that is believable."""
    received = protocol.received_at
    return protocol.occurred_at if received - BELIEVED <= protocol.occurred_at <= received else received


def _delta(protocol: FailureProtocol, at: datetime, hour: datetime) -> FailureDelta:
    return FailureDelta(
        setting_key=protocol.setting_key,
        activation_uuid=protocol.activation_uuid,
        server_name=protocol.server_name,
        fingerprint=protocol.fingerprint,
        hour=hour,
        received_at=protocol.received_at,
        exception_type=protocol.exception_type,
        place=protocol.place,
        agent_version=protocol.agent_version,
        temporary=protocol.temporary,
        count=0,
        first_at=at,
        last_at=at,
        latest=protocol.pk,
    )
