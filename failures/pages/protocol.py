"""One protocol whole: the summary first, then the place, the message and the run."""

import re
from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from console.ui.page import link, needs, page
from console.ui.text import trace_url
from contract.fingerprint import is_library
from contract.names import BROKERS_OWN
from contract.records import REFUSED, derived_id
from exposition.trace import TraceContext, attempt_context, case_of, parse
from failures.error_groups.queries import fingerprint_url
from failures.error_groups.splits import known_in
from failures.intake.rows import conflicts_of
from failures.models import FailureProtocol
from failures.pages.protocol_table import case_url, skew_of
from failures.pages.protocols import VIEW, protocols_url

# -- traceback in parts: the user's own code stands out, library frames can be folded; pure ------------------


_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$')


@dataclass(frozen=True, slots=True)
class Frame:
    """`code` are the source lines below the place, as they came."""

    file: str
    line: int
    function: str
    code: str


class FrameKind(Enum):
    TEXT = "text"
    OWN = "own"
    LIBRARY = "library"


@dataclass(slots=True)
class Section:
    """TEXT: `text` as it came. OWN, LIBRARY: `frames` in a row. `raised`: holds the innermost own frame."""

    part: FrameKind
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
        _add_frame(found, frame, FrameKind.LIBRARY if is_library(frame.file) else FrameKind.OWN)
    _mark_raised(found)
    return found


def _dedent(code: str) -> str:
    return "\n".join(line[4:] for line in code.split("\n")) if code else ""


def _add_text(found: list[Section], line: str) -> None:
    if found and found[-1].part is FrameKind.TEXT:
        found[-1].text += f"\n{line}"
    else:
        found.append(Section(FrameKind.TEXT, text=line))


def _add_frame(found: list[Section], frame: Frame, part: FrameKind) -> None:
    if not found or found[-1].part is not part:
        found.append(Section(part))
    found[-1].frames.append(frame)


def _mark_raised(found: list[Section]) -> None:
    own = [section for section in found if section.part is FrameKind.OWN]
    if own:
        own[-1].raised = True


# -- the page of one protocol --------------------------------------------------------------------------------


SHOWN_TRACEBACK = 64 * 1024
MOST_CONFLICTS = 20


@require_safe
@needs(VIEW)
def protocol_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    protocol = get_object_or_404(
        FailureProtocol.objects.select_related("setting", "activation", "server"), pk=pk
    )
    kind = (protocol.fingerprint, protocol.setting_key)
    same = FailureProtocol.objects.filter(message_key=protocol.message_key, setting_key=protocol.setting_key)
    return page(
        request,
        "failures/protocol.html",
        title=protocol.exception_type[:80],
        section="protocols",
        crumbs=[(_("Failures"), link("protocols"))],
        protocol=protocol,
        sections=sections(protocol.traceback[:SHOWN_TRACEBACK]),
        properties=sorted(
            (name, value) for name, value in (protocol.properties or {}).items() if name not in BROKERS_OWN
        ),
        refusal=FailureProtocol.objects.filter(pk=derived_id(pk, REFUSED)).first()
        if protocol.disposition
        else None,
        skew=skew_of(protocol),
        conflicts=list(conflicts_of(protocol, MOST_CONFLICTS)),
        case_url=case_url(protocol) if protocol.message_key else "",
        alike_url=protocols_url(fingerprint=protocol.fingerprint),
        kind_url=fingerprint_url(protocol.fingerprint),
        known=known_in([kind]).get(kind),
        trace_url=trace_url(parse(protocol.traceparent)),
        attempt_trace_url=trace_url(_attempt(protocol)),
        earlier=same.filter(occurred_at__lt=protocol.occurred_at).order_by("-occurred_at").first()
        if protocol.message_key
        else None,
        later=same.filter(occurred_at__gt=protocol.occurred_at).order_by("occurred_at").first()
        if protocol.message_key
        else None,
    )


def _attempt(protocol: FailureProtocol) -> TraceContext | None:
    """The trace that its KMA gave this attempt, if it sends any; None where no message was handled."""
    if not protocol.message_key:
        return None
    known = case_of(protocol.message_key, replayed=protocol.given_back, letter=protocol.letter_id)
    case = "" if protocol.message_key_weak else known
    return attempt_context(protocol.setting_key, case, protocol.attempt, protocol.pk)
