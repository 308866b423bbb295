"""A stable group key for failures: exception type and place, without what differs from message to message."""

import hashlib
import re

VERSION = 1

_FRAME = re.compile(r'^[^\S\n]*File "(?P<file>[^"]+)", line \d+, in (?P<function>.+)$', re.MULTILINE)
_LIBRARY = re.compile(
    r"(?:^|[/\\])(?:site-packages|dist-packages|lib[/\\]python[\d.]+|importlib|kma)(?:[/\\]|$)|^<frozen "
)
_SAMPLES = re.compile(r"[/\\]kma[/\\]samples[/\\]")
_VARIABLE = (
    (re.compile(r"'[^']*'|\"[^\"]*\""), "'…'"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<address>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\d+"), "<n>"),
)


def is_library(file: str) -> bool:
    """Whether a frame of `file` is not the user's own code: an installed package, Python's library, the
    container."""
    return bool(_LIBRARY.search(file)) and not _SAMPLES.search(file)


def user_frame(traceback: str) -> str:
    """`file.py:function` of the innermost frame in user code, else of the innermost frame, else empty.

    Line numbers are left out on purpose: an unrelated edit above must not open a new group.
    """
    frames = [(match["file"], match["function"]) for match in _FRAME.finditer(traceback)]
    own = [frame for frame in frames if not is_library(frame[0])]
    if not frames:
        return ""
    file, function = (own or frames)[-1]
    return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{function.strip()}"


def normalised(message: str, limit: int = 200) -> str:
    """The first line of a failure's text with ids, numbers, addresses and quoted values taken out."""
    line = message.strip().partition("\n")[0][:1000]
    for pattern, mark in _VARIABLE:
        line = pattern.sub(mark, line)
    return line[:limit]


def fingerprint(exception_type: str, message: str, traceback: str) -> str:
    """`v1:` and 16 hex digits. A failure without a frame (a child that died) is grouped by its normalised
    text."""
    place = user_frame(traceback) or normalised(message)
    digest = hashlib.sha256(f"{exception_type}\n{place}".encode("utf-8", "replace"))
    return f"v{VERSION}:{digest.hexdigest()[:16]}"
