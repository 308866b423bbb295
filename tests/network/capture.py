"""What goes over a link. As a program it keeps every frame in a file (LINK FILE); as a module it puts the
bytes of each TCP stream together again."""

import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

ETHERNET, IPV4, TCP = 14, 0x0800, 6
ALL = 0x0003
SO_RCVBUFFORCE = 33  # linux/socket.h; Python has no name for it
LARGEST, DRAIN_SECONDS = 1 << 17, 1.0
# One end that speaks to another: address and port of both.
Stream = tuple[str, int, str, int]


def keep(link: str, file: Path) -> None:
    """Until it is told to end, and what had come by then is kept."""
    told: list[float] = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(time.monotonic()))
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL)) as frames,
        file.open("wb") as out,
    ):
        frames.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
        frames.bind((link, 0))
        frames.settimeout(0.2)
        print("ready", flush=True)
        while not told or time.monotonic() < told[0] + DRAIN_SECONDS:
            with suppress(TimeoutError):
                frame = frames.recv(LARGEST)
                out.write(struct.pack("!I", len(frame)) + frame)


def streams(file: Path) -> dict[Stream, bytes]:
    """The bytes that each end sent, in their order; what was sent again counts once."""
    pieces: dict[Stream, dict[int, bytes]] = {}
    first: dict[Stream, int] = {}
    for frame in _frames(file.read_bytes()):
        if (found := _segment(frame)) is not None:
            stream, number, payload = found
            begin = first.setdefault(stream, number)
            # Numbers begin anew after 2 ** 32; what was before the first one seen is behind it.
            place = (number - begin + (1 << 31)) % (1 << 32)
            known = pieces.setdefault(stream, {})
            if len(payload) > len(known.get(place, b"")):
                known[place] = payload
    return {stream: _joined(known) for stream, known in pieces.items()}


def found(file: Path, word: bytes) -> int:
    """How often `word` went over the link in clear."""
    return sum(data.count(word) for data in streams(file).values())


def _frames(data: bytes) -> list[bytes]:
    frames, at = [], 0
    while at + 4 <= len(data):
        (length,) = struct.unpack_from("!I", data, at)
        frames.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return frames


def _segment(frame: bytes) -> tuple[Stream, int, bytes] | None:
    if len(frame) < ETHERNET + 40 or struct.unpack_from("!H", frame, 12)[0] != IPV4:
        return None
    packet = frame[ETHERNET:]
    if packet[9] != TCP:
        return None
    header, total = (packet[0] & 15) * 4, struct.unpack_from("!H", packet, 2)[0]
    # A large segment that the card is to cut says 0.
    segment = packet[header : total or len(packet)]
    source, target, number = struct.unpack_from("!HHI", segment)
    payload = segment[(segment[12] >> 4) * 4 :]
    addresses = socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20])
    return ((addresses[0], source, addresses[1], target), number, payload) if payload else None


def _joined(pieces: dict[int, bytes]) -> bytes:
    """A gap stays as one byte, so that what was not seen makes no word."""
    out, end = bytearray(), None
    for place in sorted(pieces):
        payload = pieces[place]
        if end is not None and place > end:
            out += b"\0"
        elif end is not None and place < end:
            payload = payload[end - place :]
        out += payload
        end = max(end or 0, place + len(pieces[place]))
    return bytes(out)


if __name__ == "__main__":
    keep(sys.argv[1], Path(sys.argv[2]))
