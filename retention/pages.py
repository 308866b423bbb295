"""Describes what retention does: the rule in force, what goes next of each setting, and what the last runs
did."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from agents.models import Activation, LaunchSetting
from console.lists.keyset import PAGE
from console.ui.amounts import instant, number
from console.ui.page import StateLabel, add_page, link, needs, page
from contract.names import HISTORY_KEY
from failures.models import FailureProtocol
from retention.ages import dead_letters
from retention.ages.limits import AgePreview
from retention.models import RetentionFigure, RetentionRun, RetentionState
from retention.protocols.queries import last_finished_of, ranges_of, span_of
from retention.rules import Range, Rule, none_finished
from retention.run_ledger import deleted_by_kind
from retention.text import periods_in_force

VIEW = "retention.view_retentionrun"
RUNS_SHOWN = 10
# Of dead letters that have left, for what goes next: a page that counts more holds up a request for seconds.
LOOKED_AT = 1000
AFTER = "after"
# What is counted by setting.
LETTERS = ("dead_letters", "letter_bodies", "edited_bodies")
OF_SETTINGS = ("protocols", "recovered", *LETTERS)


@dataclass(frozen=True, slots=True)
class RetentionRow:
    """`days`: N of this setting. `goes`: sentences. `did`: what the last run that did anything to it
    deleted."""

    setting: LaunchSetting
    days: int
    last: Activation | None
    goes: list[str]
    did: "Did"


@dataclass(frozen=True, slots=True)
class Did:
    """`at`: None where there is nothing to tell. `kept` and `letters`: sentences."""

    protocols: int = 0
    recovered: int = 0
    at: datetime | None = None
    kept: list[str] = field(default_factory=list)
    letters: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RunRow:
    run: RetentionRun
    state: StateLabel
    took: timedelta
    parts: list[str]


@require_safe
@needs(VIEW)
def retention_page(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()
    after = request.GET.get(AFTER, "")[:61]
    found = list(LaunchSetting.objects.filter(key__gt=after).order_by("key")[: PAGE + 1])
    listed = found[:PAGE]
    going: dict[str, list[AgePreview]] = {}
    for each in dead_letters.foresee(now, LOOKED_AT):
        going.setdefault(each.setting_key, []).append(each)
    return page(
        request,
        "retention/retention.html",
        title=_("Retention"),
        section="retention",
        crumbs=[(_("Health"), link("health"))],
        sentences=rule_sentences(),
        ages=ages(),
        rows=[_row(setting, now, going.get(setting.key, ())) for setting in listed],
        nobodys=_did(RetentionFigure.objects.filter(setting_key="", what__in=OF_SETTINGS)),
        nobodys_letters=_letters_go(going.get("", ())),
        cut_at=LOOKED_AT if any(each.cut for some in going.values() for each in some) else 0,
        after=after,
        following=listed[-1].key if len(found) > PAGE else "",
        runs=_last_runs(now),
    )


def rule_sentences() -> list[str]:
    """The rule with the numbers of this site."""
    n, c = settings.MA_RETENTION_DAYS, settings.MA_RETENTION_SILENT_DAYS
    after_error = ngettext(
        "If the activation finished with an error, only protocols created more than %(n)s day "
        "before its start are deleted. A setting can override this number.",
        "If the activation finished with an error, only protocols created more than %(n)s "
        "days before its start are deleted. A setting can override this number.",
        n,
    )
    silent = ngettext(
        "If no activation has finished for %(n)s day, all protocols older than that are "
        "deleted, including those of an activation that never ends.",
        "If no activation has finished for %(n)s days, all protocols older than that are "
        "deleted, including those of an activation that never ends.",
        c,
    )
    return [
        _(
            "Deletion depends on the last finished activation of a setting. A running activation "
            "does not count."
        ),
        _(
            "If that activation succeeded, its failure protocols and those of earlier activations "
            "are deleted."
        ),
        after_error % {"n": number(n)},
        silent % {"n": number(c)} if c else _("Protocols are not deleted just because of their age."),
        _("Failure protocols of messages that are still in the DLQ are kept.")
        if settings.MA_RETENTION_KEEP_DEAD
        else _(
            "Failure protocols of dead letters are deleted too, but each message keeps a copy of "
            "its last failure."
        ),
    ]


def ages() -> list[tuple[str, str]]:
    """Returns what has a time of its own, and how long that is."""
    words = {
        "activations": _("ended activations"),
        "runs": _("instances of ended activations"),
        "dead_letters": _("dead letters that have left the DLQ"),
        "letter_bodies": _("bodies of dead letters that have left the DLQ"),
        "replays": _("finished replays"),
        "audit": _("audit log entries"),
        "alerts": _("closed alerts, events and test notifications"),
        "refused": _("refused and conflicting records"),
        "answers": _("completed CLIENT deliveries"),
    }
    return [
        (
            words[what],
            ngettext("%(n)s day", "%(n)s days", days) % {"n": number(days)} if days else _("unlimited"),
        )
        for what, days in periods_in_force().items()
    ]


def _row(setting: LaunchSetting, now: datetime, letters: Sequence[AgePreview]) -> RetentionRow:
    figures = RetentionFigure.objects.filter(setting_key=setting.key, what__in=OF_SETTINGS)
    ranges = ranges_of(setting, now)
    goes = [what_goes_next(each) for each in ranges]
    if none_finished(ranges) and not any(_has_older(setting, each) for each in ranges):
        goes = [_("no activation has finished yet")]
    if setting.key == HISTORY_KEY:
        goes = [_("retention does not delete demo data; delete it with ./ma manage demo_history --remove")]
    goes += _letters_go(letters)
    return RetentionRow(setting, span_of(setting).days, last_finished_of(setting), goes, _did(figures))


def _letters_go(going: Sequence[AgePreview]) -> list[str]:
    """What is over of dead letters that have left their queues, and what of it stays for now."""
    found = []
    for each in going:
        words = {"n": number(each.count) + ("+" if each.cut else ""), "at": instant(each.before)}
        if each.count:
            found.append(_letters_word(each.what, each.count) % words)
        found += [_kept(reason, count) for reason, count in each.kept.items()]
    return found


def _letters_word(what: str, count: int) -> str:
    if what == "dead_letters":
        return ngettext(
            "%(n)s message that left the DLQ before %(at)s",
            "%(n)s messages that left the DLQ before %(at)s",
            count,
        )
    if what == "letter_bodies":
        return ngettext(
            "the body of %(n)s message that left the DLQ before %(at)s",
            "the bodies of %(n)s messages that left the DLQ before %(at)s",
            count,
        )
    return ngettext(
        "%(n)s edited copy created before %(at)s", "%(n)s edited copies created before %(at)s", count
    )


def _has_older(setting: LaunchSetting, of: Range) -> bool:
    """Returns whether the setting has protocols that occurred before the range's instant; one look into an
    index."""
    return (
        of.before is not None
        and FailureProtocol.objects.filter(setting=setting, occurred_at__lt=of.before).exists()
    )


def what_goes_next(of: Range) -> str:
    if of.rule is Rule.WELL:
        return _("everything up to and including the last finished activation")
    before = instant(of.before) if of.before else ""
    if of.rule is Rule.ERROR:
        return _("everything before %(at)s (based on the last finished activation)") % {"at": before}
    return _("everything before %(at)s (no activation has finished for a long time)") % {"at": before}


def _did(figures: QuerySet[RetentionFigure]) -> Did:
    """Describes the latest run that did anything: two things by at most three sentences of the rule, and
    three of letters."""
    latest = list(figures.order_by("-id")[:9])
    same = [each for each in latest if each.run_id == latest[0].run_id]
    if not same:
        return Did()
    kept: Counter[str] = Counter()
    for each in same:
        # Two sentences of the rule may have let go of the same ones.
        kept |= Counter(each.kept_for)
    return Did(
        sum(each.deleted for each in same if each.what == "protocols"),
        sum(each.deleted for each in same if each.what == "recovered"),
        max(each.until for each in same),
        [_kept(reason, count) for reason, count in kept.items() if count],
        [f"{what_word(each.what)}: {number(each.deleted)}" for each in same if each.what in LETTERS],
    )


def _kept(reason: str, count: int) -> str:
    words = {
        "attempts": _("needed to count delivery attempts after a KMA crash"),
        "archive": _("not in a verified archive block yet"),
        "index": _("their messages are not in the DLQ index yet"),
        "dead": _("their messages are still in the DLQ"),
        "job": _("used by an unfinished replay"),
        "outcome": _("the outcome is not known yet"),
    }
    return _("%(n)s kept: %(why)s") % {"n": number(count), "why": words.get(reason, reason)}


def _last_runs(now: datetime) -> list[RunRow]:
    shown = {
        RetentionState.RUNNING.value: StateLabel(_("running"), "info", "play"),
        RetentionState.DONE.value: StateLabel(_("done"), "ok", "ok"),
        RetentionState.FAILED.value: StateLabel(_("failed"), "bad", "bad"),
    }
    runs = list(RetentionRun.objects.all()[:RUNS_SHOWN])
    sums = deleted_by_kind(runs)
    return [
        RunRow(
            run,
            shown[run.state],
            (run.ended_at or now) - run.started_at,
            [f"{what_word(what)}: {number(count)}" for what, count in sums.get(run.pk, {}).items()],
        )
        for run in runs
    ]


def what_word(what: str) -> str:
    words = {
        "protocols": _("failure protocols"),
        "recovered": _("recovered messages"),
        "runs": _("instances"),
        "activations": _("activations"),
        "groups": _("failure counts of unknown activations"),
        "fingerprints": _("error groups"),
        "dead_letters": _("dead letters"),
        "letter_bodies": _("bodies of dead letters"),
        "edited_bodies": _("edited copies"),
        "replays": _("replays"),
        "replay_items": _("replay items"),
        "replay_slices": _("replay slices"),
        "audit": _("audit log entries"),
        "alerts": _("closed alerts"),
        "events": _("events"),
        "test_notices": _("test notifications"),
        "refused": _("refused records"),
        "conflicts": _("conflicting records"),
        "answers": _("completed CLIENT deliveries"),
    }
    return words.get(what, what)


def register() -> None:
    add_page("retention/", retention_page, "retention")
