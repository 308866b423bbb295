"""An activation beside the finished one before it: its figures, what fails that did not, what does not any
more, and what of the setting was changed between them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import floor, log10
from typing import Any

from django.db.models import Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.activations import launch
from agents.models import Activation
from agents.models.parameters import text_of
from console.ui.amounts import duration, number
from console.ui.page import Panel, link
from failures.error_groups.known_errors import known_of
from failures.error_groups.merges import heads_of
from failures.error_groups.queries import Alike, counts_of_activation, fingerprint_url
from failures.error_groups.rules import Change, Difference, compare
from failures.models import KnownError
from failures.pages.protocols import VIEW, protocols_url

SHOWN = 40


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """`alike`: what tells the kind; `merged`: how many others belong to it; `before_url`, `after_url`: the
    protocols, empty where they are of several fingerprints or there are none; `before_share`, `after_share`:
    what is compared, empty where attempts are unknown."""

    difference: Difference
    alike: Alike
    merged: int
    known: KnownError | None
    url: str
    word: str
    tone: str
    before_url: str
    after_url: str
    before_share: str
    after_share: str


@dataclass(frozen=True, slots=True)
class Work:
    """What an activation did so far, on all servers together; `seconds`: how long it lasted."""

    seconds: float
    handled: int
    failed: int
    temporary: int

    @property
    def attempts(self) -> int:
        return self.handled + self.failed + self.temporary

    @property
    def per_minute(self) -> str:
        """Processed messages; nothing is said of less than a second."""
        if self.seconds < 1:
            return "—"
        rate = self.handled * 60 / self.seconds
        return number(rate, 1 if rate < 10 else 0)

    @property
    def failed_share(self) -> str:
        """Of the attempts, temporary failures aside."""
        share = 100 * self.failed / self.attempts if self.attempts else 0.0
        return f"{number(share, 1)}\N{NO-BREAK SPACE}%"


def share_of(failures: int, attempts: int) -> str:
    """Two digits, however rare they are."""
    if not attempts:
        return ""
    share = 100 * failures / attempts
    decimals = max(0, 1 - floor(log10(share))) if share else 0
    return f"{number(share, decimals)}\N{NO-BREAK SPACE}%"


@dataclass(frozen=True, slots=True)
class FigureRow:
    """The same figure of both activations; `urls` lead to what it counts."""

    label: str
    before: str
    now: str
    before_url: str = ""
    now_url: str = ""


@dataclass(frozen=True, slots=True)
class FieldRow:
    label: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ActivationDifference:
    """`work`: of the one before and of this one. `left_out`: kinds of failures beyond the most that were
    asked for. `changed`: fields of the setting, empty too where nobody knows them (not `compared`).
    `versions`: of the agent, where the failures of both say different ones."""

    work: tuple[Work, Work]
    rows: list[DifferenceRow]
    left_out: int
    compared: bool
    changed: list[launch.Changed]
    versions: tuple[list[str], list[str]] | None

    @property
    def attempts(self) -> tuple[int, int]:
        return self.work[0].attempts, self.work[1].attempts


def difference_panel(request: HttpRequest, activation: Activation) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    before = finished_before(activation)
    if before is None:
        return None
    found = difference_between(before, activation, SHOWN)
    context = {
        "before": before,
        "figures": _figures((before, found.work[0]), (activation, found.work[1])),
        "attempts": found.attempts,
        "before_url": link("activation", before.pk),
        "rows": found.rows,
        "left_out": found.left_out,
        "fields": [
            FieldRow(launch.field_label(one.name), _said(one.old), _said(one.new)) for one in found.changed
        ],
        "compared": found.compared,
        "versions": found.versions,
    }
    title = _("Comparison with the previous finished activation")
    return {"title": title, "template": "failures/difference.html", "context": context}


def finished_before(activation: Activation) -> Activation | None:
    earlier = Activation.objects.filter(
        setting=activation.setting_id, number__lt=activation.number, ended_at__isnull=False
    )
    return earlier.order_by("-number", "-started_at").first()


def work_of(activation: Activation, now: datetime) -> Work:
    """Until `now`, where it has not ended."""
    lasted = (activation.ended_at or now) - activation.started_at
    sums = activation.runs.aggregate(handled=Sum("handled"), failed=Sum("failed"), temporary=Sum("temporary"))
    counted = {name: int(total or 0) for name, total in sums.items()}
    return Work(seconds=max(0.0, lasted.total_seconds()), **counted)


def _figures(before: tuple[Activation, Work], after: tuple[Activation, Work]) -> list[FigureRow]:
    (one, did), (other, does) = before, after

    def failed(label: str, old: int, new: int, temporary: str) -> FigureRow:
        urls = [protocols_url(activation=each.pk, temporary=temporary) for each in (one, other)]
        return FigureRow(label, number(old), number(new), *urls)

    return [
        FigureRow(_("Duration"), duration(round(did.seconds)), duration(round(does.seconds))),
        FigureRow(_("Processed"), number(did.handled), number(does.handled)),
        FigureRow(_("Processed per minute"), did.per_minute, does.per_minute),
        failed(_("Failed"), did.failed, does.failed, "false"),
        FigureRow(_("Failure rate"), did.failed_share, does.failed_share),
        failed(_("Temporary"), did.temporary, does.temporary, "true"),
    ]


def difference_between(before: Activation, after: Activation, most: int) -> ActivationDifference:
    """What is the same as before comes last."""
    old, new = counts_of_activation(before.pk), counts_of_activation(after.pk)
    now = timezone.now()
    work = work_of(before, now), work_of(after, now)
    examples = {alike.fingerprint: alike for alike in [*old, *new]}
    heads = heads_of(set(examples))
    found = compare(_counts(old, heads), _counts(new, heads), *(each.attempts for each in work))
    known = known_of({one.fingerprint for one in found[:most]})
    kinds: dict[str, list[Alike]] = defaultdict(list)
    for fingerprint, alike in examples.items():
        kinds[heads[fingerprint]].append(alike)
    words = {
        Change.NEW: (_("new"), "bad"),
        Change.MORE: (_("more often"), "warn"),
        Change.GONE: (_("gone"), "ok"),
        Change.FEWER: (_("less often"), "ok"),
        Change.SAME: (_("unchanged"), ""),
    }
    compared = before.launched_with is not None and after.launched_with is not None
    changed = launch.changes(before.launched_with or {}, after.launched_with or {}) if compared else []
    return ActivationDifference(
        work,
        [
            _row(one, kinds[one.fingerprint], known, words[one.change], (before, work[0]), (after, work[1]))
            for one in found[:most]
        ],
        max(0, len(found) - most),
        compared,
        changed,
        _versions(old, new),
    )


def _row(
    one: Difference,
    kinds: list[Alike],
    known: Mapping[str, KnownError],
    word: tuple[str, str],
    before: tuple[Activation, Work],
    after: tuple[Activation, Work],
) -> DifferenceRow:
    alike = next((each for each in kinds if each.fingerprint == one.fingerprint), kinds[0])
    single = len(kinds) == 1

    def protocols(activation: Activation, count: int) -> str:
        return (
            protocols_url(activation=activation.pk, fingerprint=alike.fingerprint) if single and count else ""
        )

    return DifferenceRow(
        one,
        alike,
        len(kinds) - 1,
        known.get(one.fingerprint),
        fingerprint_url(one.fingerprint),
        *word,
        protocols(before[0], one.before),
        protocols(after[0], one.after),
        share_of(one.before, before[1].attempts),
        share_of(one.after, after[1].attempts),
    )


def _counts(alikes: list[Alike], heads: Any) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for alike in alikes:
        counts[heads[alike.fingerprint]] += alike.count
    return counts


def _versions(old: list[Alike], new: list[Alike]) -> tuple[list[str], list[str]] | None:
    """Of the agent, as the failures of both said it; None where they say the same or nothing."""
    said, says = (sorted({alike.agent_version for alike in alikes} - {""}) for alikes in (old, new))
    return (said, says) if said and says and said != says else None


def _said(value: Any) -> str:
    if value is None:
        return "—"
    return value if isinstance(value, str) else text_of(value)
