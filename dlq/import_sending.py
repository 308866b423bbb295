"""Sending an import: into the subscription of one setting and no other one, each message once, whatever is
killed.

import_begun  in the audit: it is about to be sent. A worker that dies anywhere after it is followed by a
person
              who sends the same file again: it has the same ids, so the broker drops what it has already.
import        in the audit: all of it is at the broker. The same file again is refused, unless it is wished.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.services.rights import may, missing
from broker.amqp_adapter import AmqpPublisher
from broker.errors import AddressUnknown, BrokerError
from broker.port import Outgoing, Publisher
from console.audit.log import Person, attempt, record
from console.audit.models import AuditEntry, AuditResult
from dlq import crash, rights
from dlq.importing import Parcel, import_id, stamped

AT_ONCE = 100
# How often the same lines may be sent again.
MOST_TIMES = 100


class ImportRefused(Exception):
    """In the audit already; nothing was sent, or (`broker_away`) perhaps some: sending again sends the rest
    only."""

    def __init__(self, code: str, reason: str, what_to_do: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason, self.what_to_do = code, reason, what_to_do


@dataclass(frozen=True, slots=True)
class Plan:
    """`done` is the entry of the latest import of the same lines, if there is one."""

    setting: LaunchSetting
    parcel: Parcel
    operation: UUID
    done: AuditEntry | None


def why_may_not(by: Any, setting: LaunchSetting) -> str:
    """For people, empty where this person may."""
    for right in (rights.SEE, rights.IMPORT):
        if not may(by, right, setting):
            return missing(right, setting.pool.name)
    return ""


def plan(setting: LaunchSetting, parcel: Parcel) -> Plan:
    """Changes nothing."""
    done: AuditEntry | None = None
    for again in range(MOST_TIMES):
        operation = import_id(setting.key, parcel.digest, again)
        entry = AuditEntry.objects.filter(
            operation=operation, action="import", result=AuditResult.DONE
        ).first()
        if entry is None:
            break
        done = entry
    return Plan(setting, parcel, operation, done)


def send(
    wanted: Plan,
    *,
    by: Person,
    now: datetime,
    reason: str = "",
    again: bool = False,
    publisher: Publisher | None = None,
) -> int:
    """How many. Raises ImportRefused."""
    setting = wanted.setting
    with attempt("import", by=by, target=f"setting:{setting.key}", setting_key=setting.key):
        if why := why_may_not(by, setting):
            raise ImportRefused("permission_denied", why, _("Ask an administrator for the permission."))
        if setting.destination is None:
            raise ImportRefused("no_destination", _("The setting takes no messages."))
        if wanted.done is not None and not again:
            text = _("The same lines were imported already, %(at)s by %(by)s.")
            told = {"at": f"{wanted.done.at:%Y-%m-%d %H:%M} UTC", "by": wanted.done.by_name or "?"}
            raise ImportRefused("imported_already", text % told, _("Say so if they shall be sent once more."))
        about: dict[str, Any] = {
            "by": by, "target": f"setting:{setting.key}", "operation": wanted.operation,
            "setting_key": setting.key,
            "reason": reason, "detail": {"lines": wanted.parcel.digest},
        }  # fmt: skip
        number = len(wanted.parcel.messages)
        record("import_begun", now=now, counts={"messages": number}, **about)
        crash.point("import-begun")
        _publish(wanted, f"{setting.destination.name}::{setting.key}", publisher)
        crash.point("import-sent")
        record("import", now=now, counts={"messages": number}, **about)
        return number


def _publish(wanted: Plan, address: str, publisher: Publisher | None) -> None:
    own = publisher or AmqpPublisher(settings.MA_BROKER_AMQP)
    messages = stamped(wanted.parcel, wanted.operation)
    try:
        for start in range(0, len(messages), AT_ONCE):
            own.publish([Outgoing(address, message) for message in messages[start : start + AT_ONCE]])
            crash.point("import-portion")
    except AddressUnknown as error:
        raise ImportRefused("no_subscription", _("The subscription of the setting is not there.")) from error
    except BrokerError as error:
        raise ImportRefused(
            "broker_away",
            _("The broker does not take it now: %(why)s.") % {"why": error},
            _("Import the same file again: nothing is sent twice."),
        ) from error
    finally:
        if publisher is None:
            own.close()
