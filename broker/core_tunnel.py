"""Asks the broker for Core messages as they are: a link capability that Proton cannot set, so its frame is
rewritten.

`offered-capabilities` of an attach says to Artemis (2.30 and later) that this receiver takes Core messages
unconverted. Proton knows capabilities of connections and addresses only. A broker that does not know it
converts as ever.
"""

from broker.amqp_types import read, write
from broker.port import NULL
from contract.typed import Typed

CAPABILITY = "AMQ_CORE_MESSAGE_TUNNELING"
_ATTACH = b"\x00\x53\x12"
_OFFERED = 11  # place of the field in an attach (OASIS AMQP 1.0, section 2.7.3)


def offering(frames: bytes) -> bytes:
    """The frames, each attach among them with the capability. They must be whole."""
    done, at = [], 0
    while at < len(frames):
        size = int.from_bytes(frames[at : at + 4])
        done.append(_frame(frames[at : at + size]))
        at += size
    return b"".join(done)


def _frame(frame: bytes) -> bytes:
    start = 4 * frame[4]
    if frame[start : start + 3] != _ATTACH:
        return frame
    fields = list(read(frame, start + 3)[0].value)
    fields += [NULL] * (_OFFERED + 1 - len(fields))
    fields[_OFFERED] = Typed("symbol", CAPABILITY)
    content = frame[4:start] + _ATTACH + write(Typed("list", tuple(fields)))
    return (len(content) + 4).to_bytes(4) + content
