"""Sending an import: into the subscription of one setting and no other one, each message once, whatever is
killed.

messages.import_begun in the audit: it is about to be sent. A worker that dies anywhere after it is followed
by a person who sends the same file again: it has the same ids, so the broker drops what it has already.
messages.import in the audit: all of it is at the broker. The same file again is refused, unless it is wished.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agents.models import LaunchSetting
from agents.pools.rights import SettingRight
from broker.amqp.publisher import AmqpPublisher
from broker.port import AddressUnknown, BrokerError, Outgoing, Publisher
from console.audit.log import LONGEST_REASON, record
from console.audit.models import AuditEntry, AuditResult
from console.jobs import crash
from console.operations.inputs import TextInput
from console.operations.operation import Act, AllOf, Done, Operation
from console.operations.refusals import BrokerAway, Refused
from console.ui.amounts import number
from dlq import rights
from dlq.imports.rules import ImportFile, import_id, stamped
from dlq.subscriptions.operations import MESSAGES

BEGUN = "messages.import_begun"
AT_ONCE = 100
# How often the same lines may be sent again.
MOST_TIMES = 100


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """`done` is the entry of the latest import of the same lines, if there is one."""

    parcel: ImportFile
    operation: UUID
    done: AuditEntry | None


def plan(setting: LaunchSetting, parcel: ImportFile) -> ImportPlan:
    """Changes nothing."""
    done: AuditEntry | None = None
    for again in range(MOST_TIMES):
        operation = import_id(setting.key, parcel.digest, again)
        entry = AuditEntry.objects.filter(
            operation=operation, action=ImportMessages.code, result=AuditResult.DONE
        ).first()
        if entry is None:
            break
        done = entry
    return ImportPlan(parcel, operation, done)


class ImportMessages(Operation[LaunchSetting]):
    """Sends the planned messages. `again`: although the same lines were imported before."""

    code, label = "messages.import", _("Import")
    on, permission = MESSAGES, AllOf((SettingRight(rights.SEE), SettingRight(rights.IMPORT)))
    inputs = {"reason": TextInput(_("Reason (stored in the audit log)"), LONGEST_REASON, long=True)}

    def run(
        self,
        setting: LaunchSetting,
        act: Act,
        *,
        wanted: ImportPlan,
        again: bool = False,
        publisher: Publisher | None = None,
        **inputs: Any,
    ) -> Done:
        if setting.destination is None:
            raise Refused("no_destination", gettext("Cannot import: this setting does not receive messages."))
        if wanted.done is not None and not again:
            text = gettext("The same lines were already imported at %(at)s by %(by)s.")
            params = {"at": f"{wanted.done.at:%Y-%m-%d %H:%M} UTC", "by": wanted.done.by_name or "?"}
            more = gettext("Confirm to send them again.")
            raise Refused("imported_already", text % params, more)
        count, detail = len(wanted.parcel.messages), {"lines": wanted.parcel.digest}
        about = act.about | {"operation": wanted.operation, "counts": {"messages": count}}
        record(**about | {"action": BEGUN}, by=act.by, now=act.now, reason=act.reason, detail=detail)
        crash.point("import-begun")
        _publish(wanted, f"{setting.destination.name}::{setting.key}", publisher)
        crash.point("import-sent")
        act.record(about=about, **detail)
        words = ngettext("%(n)s message was sent to %(key)s.", "%(n)s messages were sent to %(key)s.", count)
        return Done(words % {"n": number(count), "key": setting.key})


def _publish(wanted: ImportPlan, address: str, publisher: Publisher | None) -> None:
    own = publisher or AmqpPublisher(settings.MA_BROKER_AMQP)
    messages = stamped(wanted.parcel, wanted.operation)
    try:
        for start in range(0, len(messages), AT_ONCE):
            own.publish([Outgoing(address, message) for message in messages[start : start + AT_ONCE]])
            crash.point("import-portion")
    except AddressUnknown as error:
        raise Refused(
            "no_subscription", gettext("Cannot import: the subscription of the setting does not exist.")
        ) from error
    except BrokerError as error:
        raise BrokerAway(error, gettext("Import the same file again: no message is sent twice.")) from error
    finally:
        if publisher is None:
            own.close()
