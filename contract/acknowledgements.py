"""Answers to deliveries of the mode CLIENT: the two actions, and the id by which anybody may name a delivery.

An id is `SERVER.ACTIVATION.EPOCH.NONCE.MAC`, at most LONGEST_ID characters, all of them fit for a URL. The
last part is made with the secret of the run, which the MA and the KMA know: the MA tells a true id whose
delivery it has not heard of yet from an invented one.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

NONCE_BYTES = 16
LONGEST_ID = 255
_LARGEST_EPOCH = 2**63


class Action(Enum):
    """How a delivery is answered."""

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"


class EndState(Enum):
    """How a delivery that waited for an answer ended. `lost`: it went with its connection or its
    container."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled_back"
    EXPIRED = "expired"
    LOST = "lost"


END_OF = {Action.COMMIT: EndState.COMMITTED, Action.ROLLBACK: EndState.ROLLED_BACK}
_ACTIONS = {
    "commit": Action.COMMIT,
    "jbxcommit": Action.COMMIT,
    "rollback": Action.ROLLBACK,
    "jbxrollback": Action.ROLLBACK,
}


def parse_action(text: str) -> Action:
    """In any letter case. Raises ValueError, whose text names what there is."""
    action = _ACTIONS.get(text.lower()) if isinstance(text, str) and text.isascii() else None
    if action is None:
        shown = text[:60] if isinstance(text, str) else type(text).__name__
        raise ValueError(f"{shown!r} is not an action: COMMIT (JBXCommit) or ROLLBACK (JBXRollback)")
    return action


@dataclass(frozen=True, slots=True)
class IdParts:
    """What an id says of its delivery. Not proved before `verify`."""

    server: str
    activation: UUID
    epoch: int
    nonce: bytes


@dataclass(frozen=True, slots=True)
class AnswerReply:
    """The body of what the MA answers to `POST /api/v1/acknowledgements/`: `state` is `pending` (202) or
    final."""

    state: str
    reason: str = ""


def make_id(secret: str, server: str, activation: UUID, epoch: int, nonce: bytes) -> str:
    """`secret` is hexadecimal, `nonce` NONCE_BYTES random bytes, one per delivery. Raises ValueError."""
    if len(nonce) != NONCE_BYTES:
        raise ValueError(f"a nonce has {NONCE_BYTES} bytes")
    head = f"{_text(server.encode())}.{activation.hex}.{epoch}.{_text(nonce)}"
    made = f"{head}.{_mac(secret, head)}"
    if len(made) > LONGEST_ID:
        raise ValueError("the server's name is too long for an acknowledgement id")
    return made


def read_id(text: str) -> IdParts:
    """The parts of an id, whoever made it. Raises ValueError for what no `make_id` made."""
    parts = text.split(".") if isinstance(text, str) and len(text) <= LONGEST_ID else []
    try:
        server, activation, epoch, nonce, mac = parts
        found = IdParts(_bytes(server).decode(), UUID(hex=activation), _number(epoch), _bytes(nonce))
        whole = (
            activation == found.activation.hex and len(found.nonce) == NONCE_BYTES and len(_bytes(mac)) == 32
        )
    except ValueError:
        whole = False
    if not whole:
        raise ValueError("not an acknowledgement id")
    return found


def verify(secret: str, text: str) -> bool:
    """Whether the id was made with this secret. Raises ValueError where it is no id."""
    read_id(text)
    head, _, mac = text.rpartition(".")
    return hmac.compare_digest(mac, _mac(secret, head))


def _mac(secret: str, head: str) -> str:
    return _text(hmac.new(bytes.fromhex(secret), head.encode(), hashlib.sha256).digest())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _text(data) != text:  # unused bits that are set: a second spelling of the same bytes
        raise binascii.Error("not canonical")
    return data


def _number(text: str) -> int:
    if not text.isdigit() or str(int(text)) != text or int(text) >= _LARGEST_EPOCH:
        raise ValueError("no epoch")
    return int(text)
