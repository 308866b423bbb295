"""A traceback as parts to show: what the user's own code did stands out, library frames can be folded.
Pure."""

import re
from dataclasses import dataclass, field
from enum import Enum

from contract.fingerprint import is_library

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')


@dataclass(frozen=True, slots=True)
class Frame:
    """`code` are the source lines below the place, as they came."""

    file: str
    line: int
    function: str
    code: str


class Part(Enum):
    TEXT = "text"
    OWN = "own"
    LIBRARY = "library"


@dataclass(slots=True)
class Section:
    """TEXT: `text` as it came. OWN, LIBRARY: `frames` in a row. `raised`: holds the innermost own frame."""

    part: Part
    text: str = ""
    frames: list[Frame] = field(default_factory=list)
    raised: bool = False


def sections(traceback: str) -> list[Section]:
    """Frames of one kind in a row are one section. Texts that are no traceback are one TEXT section."""
    found: list[Section] = []
    lines = traceback.strip("\n").split("\n")
    index = 0
    while index < len(lines):
        match = _FRAME.match(lines[index])
        if match is None:
            _add_text(found, lines[index])
            index += 1
            continue
        index += 1
        first = index
        while index < len(lines) and lines[index].startswith("    ") and not _FRAME.match(lines[index]):
            index += 1
        code = "\n".join(line.strip("\r") for line in lines[first:index])
        frame = Frame(match["file"], int(match["line"][:9]), match["function"] or "", _dedent(code))
        _add_frame(found, frame, Part.LIBRARY if is_library(frame.file) else Part.OWN)
    _mark_raised(found)
    return found


def _dedent(code: str) -> str:
    return "\n".join(line[4:] for line in code.split("\n")) if code else ""


def _add_text(found: list[Section], line: str) -> None:
    if found and found[-1].part is Part.TEXT:
        found[-1].text += f"\n{line}"
    else:
        found.append(Section(Part.TEXT, text=line))


def _add_frame(found: list[Section], frame: Frame, part: Part) -> None:
    if not found or found[-1].part is not part:
        found.append(Section(part))
    found[-1].frames.append(frame)


def _mark_raised(found: list[Section]) -> None:
    own = [section for section in found if section.part is Part.OWN]
    if own:
        own[-1].raised = True
