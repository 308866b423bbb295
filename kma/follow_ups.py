"""The small event that a setting's follow-up destination gets for each commit or rollback of the mode
CLIENT."""

import json
from datetime import datetime
from uuid import UUID, uuid5

from broker.amqp.codec import decode
from broker.port import Outgoing
from contract.acknowledgements import EndState
from contract.reasons import Reason
from contract.records import MessageIdentity, RecordRun
from kma.outgoing import encoded_message

_EVENTS = UUID("0d7e2c55-8a0f-4f39-b7e8-54a1f2f0c9d4")


def event(
    destination: str,
    run: RecordRun,
    acknowledgement: str,
    message: MessageIdentity,
    jms_message_id: str,
    state: EndState,
    reason: Reason | None,
    at: datetime,
) -> Outgoing:
    """JSON in a text message; its message id is the same whenever it is made again, so that it can be told
    apart."""
    body = {
        "event": state.value,
        "setting": run.setting,
        "activation": str(run.activation),
        "server": run.server,
        "acknowledgement": acknowledgement,
        "message_key": message.key,
        "jms_message_id": jms_message_id,
        "attempt": message.attempt,
        "reason": str(reason or ""),
        "reason_code": reason.code if reason else "",
        "at": at.isoformat(),
    }
    identity = f"ID:{uuid5(_EVENTS, f'{acknowledgement} {state.value}')}"
    text = json.dumps(body, ensure_ascii=False)
    return Outgoing(
        destination, decode(encoded_message(text, {}, message_id=identity, content_type="application/json"))
    )
