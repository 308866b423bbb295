"""Needs as rows: everything that needs attention about one setting, server or component is one row. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from console.ui.page import Text

WORST_FIRST = ("bad", "warn", "info", "off")
SETTING, GROUP, SERVER, COMPONENT, QUEUE = "setting", "group", "server", "component", "queue"
# A row shows so many reasons, the worst ones.
MOST_REASONS = 4

Act = tuple[Text, str]


@dataclass(frozen=True, slots=True)
class Need:
    """One reason. `about` is the kind of its subject, `who` the subject's name. `acts` are the buttons: text
    and address. `says_kinds` are the kinds of alerts that would say the same. `todo` is what an alert
    recommends."""

    tone: str
    icon: str
    who: str
    why: Text
    url: str
    acts: Sequence[Act] = ()
    about: str = SETTING
    says_kinds: frozenset[str] = frozenset()
    todo: Text = ""

    @property
    def subject(self) -> tuple[str, str]:
        return self.about, self.who


@dataclass(frozen=True, slots=True)
class Alerted:
    """An open alert as a need, with the kind and the page of the alert."""

    kind: str
    need: Need
    link: Act


@dataclass(frozen=True, slots=True)
class Attention:
    """A row: the worst of its reasons first."""

    reasons: Sequence[Need]
    more: int

    @property
    def worst(self) -> Need:
        return self.reasons[0]


def with_alerts(found: Iterable[Need], alerts: Iterable[Alerted]) -> list[Need]:
    """Adds the alerts. One that says what a need of the same subject says gives it its link and, where it is
    graver, its tone; any other one is a need of its own."""
    needs = list(found)
    for alert in alerts:
        same = next(
            (
                place
                for place, need in enumerate(needs)
                if need.subject == alert.need.subject and alert.kind in need.says_kinds
            ),
            None,
        )
        if same is None:
            needs.append(replace(alert.need, acts=[*alert.need.acts, alert.link]))
            continue
        need = needs[same]
        tone = min(need.tone, alert.need.tone, key=WORST_FIRST.index)
        needs[same] = replace(need, tone=tone, acts=[*need.acts, alert.link])
    return needs


def by_subject(found: Iterable[Need]) -> list[Attention]:
    """Returns a row per subject, the worst first; equals keep their order. A button that leads where one of
    the same row leads already is left out, unless its words differ."""
    subjects: dict[tuple[str, str], list[Need]] = {}
    for need in sorted(found, key=_rank):
        subjects.setdefault(need.subject, []).append(need)
    return [_row(reasons) for reasons in subjects.values()]


def _rank(need: Need) -> int:
    return WORST_FIRST.index(need.tone)


def _row(reasons: Sequence[Need]) -> Attention:
    offered: set[tuple[str, str]] = set()
    shown = []
    for need in reasons[:MOST_REASONS]:
        acts = [act for act in need.acts if (str(act[0]), act[1]) not in offered]
        offered |= {(str(text), url) for text, url in acts}
        shown.append(replace(need, acts=acts))
    return Attention(shown, len(reasons) - len(shown))
