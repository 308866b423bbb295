"""Describes what is said of a replay: its bars, why it waits, how it goes about its dead letters."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count
from django.utils.formats import time_format
from django.utils.translation import gettext, gettext_lazy, ngettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from console.ui.amounts import number
from console.ui.page import Bar, Fact, StateLabel, Text
from console.ui.text import visible_html
from dlq.dead_letters.masks import Masks
from dlq.edit.rules.bulk_rule import describe_rule, rule_of
from dlq.models import (
    OPEN_JOBS,
    Action,
    DeadLetter,
    ItemState,
    JobState,
    LetterState,
    Outcome,
    ReplayItem,
    ReplayJob,
)
from dlq.models.replay import DELIVERING
from dlq.replay.counts import (
    CONSUMERS_OPEN,
    STOPPING,
    TARGET_BLOCKED,
    WALKING,
    reason_to_wait,
    waiting_of,
)
from dlq.replay.preflight.text import OPERATION_WORDS, reason
from dlq.replay.rules.ladder import step_size

# -- how the states of dead letters and replays look ---------------------------------------------------------


BODY_DELETED = _(
    "Retention deleted the body after the message left its queue. The properties and the case file are kept."
)

LETTERS: dict[str, StateLabel] = {
    LetterState.DEAD: StateLabel(LetterState.DEAD.label, "bad", "letter"),
    LetterState.GIVEN_BACK: StateLabel(LetterState.GIVEN_BACK.label, "info", "back"),
    LetterState.GONE: StateLabel(LetterState.GONE.label, "off", "off"),
    LetterState.DISCARDED: StateLabel(LetterState.DISCARDED.label, "off", "trash"),
}
IN_TRASH = StateLabel(pgettext_lazy("message", "in trash"), "off", "trash")


def letter_label(letter: DeadLetter) -> StateLabel:
    return IN_TRASH if letter.is_in_trash else LETTERS[letter.state]


JOBS: dict[str, StateLabel] = {
    JobState.AWAITING: StateLabel(JobState.AWAITING.label, "warn", "person"),
    JobState.PAUSED: StateLabel(JobState.PAUSED.label, "warn", "pause"),
    JobState.STOPPED: StateLabel(JobState.STOPPED.label, "bad", "warn"),
    JobState.PLANNED: StateLabel(JobState.PLANNED.label, "info", "wait"),
    JobState.RUNNING: StateLabel(JobState.RUNNING.label, "info", "run"),
    JobState.DONE: StateLabel(JobState.DONE.label, "ok", "ok"),
    JobState.FAILED: StateLabel(JobState.FAILED.label, "bad", "bad"),
    JobState.CANCELLED: StateLabel(JobState.CANCELLED.label, "off", "off"),
}
ITEMS: dict[str, StateLabel] = {
    ItemState.PLANNED: StateLabel(ItemState.PLANNED.label, "info", "wait"),
    ItemState.GIVEN_BACK: StateLabel(ItemState.GIVEN_BACK.label, "info", "back"),
    ItemState.UNCONFIRMED: StateLabel(ItemState.UNCONFIRMED.label, "warn", "wait"),
    ItemState.TAKEN_ELSEWHERE: StateLabel(ItemState.TAKEN_ELSEWHERE.label, "warn", "off"),
    ItemState.NOT_FOUND: StateLabel(ItemState.NOT_FOUND.label, "warn", "warn"),
    ItemState.FAILED_TO_MOVE: StateLabel(ItemState.FAILED_TO_MOVE.label, "bad", "bad"),
    ItemState.SKIPPED: StateLabel(ItemState.SKIPPED.label, "off", "mute"),
    ItemState.CANCELLED: StateLabel(ItemState.CANCELLED.label, "off", "off"),
}
OUTCOMES: dict[str, StateLabel] = {
    Outcome.WAITING: StateLabel(Outcome.WAITING.label, "off", "wait"),
    Outcome.HANDLED: StateLabel(Outcome.HANDLED.label, "ok", "ok"),
    Outcome.FAILED_AGAIN: StateLabel(Outcome.FAILED_AGAIN.label, "warn", "warn"),
    Outcome.DEAD_AGAIN: StateLabel(Outcome.DEAD_AGAIN.label, "bad", "letter"),
    Outcome.UNKNOWN: StateLabel(Outcome.UNKNOWN.label, "warn", "warn"),
}


@dataclass(frozen=True, slots=True)
class ActionWords:
    """Says what an action does. `title` asks before it; `button` is the action alone, as the word before a
    number of dead letters; `after` is what becomes of them."""

    title: Text
    button: Text
    icon: str
    tone: str
    after: Text


ACTIONS: dict[str, ActionWords] = {
    Action.GIVE_BACK: ActionWords(
        _("Replay messages?"),
        _("Replay"),
        "back",
        "primary",
        _(
            "The agent processes the messages as new, with all attempts available. If the cause "
            "of the failure remains, they fail again and return to the DLQ. This cannot be "
            "undone."
        ),
    ),
    Action.REDIRECT: ActionWords(
        _("Redirect messages?"),
        _("Redirect"),
        "back",
        "primary",
        _(
            "The agent of the other setting processes the messages as new. If they fail again, "
            "they go to the DLQ of that setting. This cannot be undone."
        ),
    ),
    Action.DISCARD: ActionWords(
        _("Discard messages?"),
        _("Discard"),
        "trash",
        "danger",
        _(
            "The messages stay in the trash and can be restored until they expire. Then they are "
            "deleted permanently."
        ),
    ),
    Action.PUT_BACK: ActionWords(
        _("Restore discarded messages?"),
        _("Restore"),
        "back",
        "primary",
        _(
            "The messages return to the DLQ of the setting, where they were before. Processing "
            "does not start."
        ),
    ),
}


def replay_counts(job: ReplayJob) -> dict[str, int]:
    """Returns them by state of items and by outcome; kept with the job. One of an earlier version is
    counted."""
    if job.counts or not job.total:
        return {name: int(count) for name, count in job.counts.items()}
    rows = ReplayItem.objects.filter(job=job).order_by().values_list("state", "outcome").annotate(Count("pk"))
    counts: dict[str, int] = {}
    for state, outcome, count in rows:
        counts[state] = counts.get(state, 0) + count
        if outcome:
            counts[outcome] = counts.get(outcome, 0) + count
    return counts


def to_move(job: ReplayJob, counts: Mapping[str, int]) -> int:
    """While dead letters are still written down, `total` is what the job began with."""
    past = [state for state in ItemState if state != ItemState.PLANNED]
    planned = counts.get(ItemState.PLANNED, 0)
    return (
        planned if job.planned_at else max(planned, job.total - sum(counts.get(state, 0) for state in past))
    )


def unsettled_count(job: ReplayJob, counts: Mapping[str, int]) -> int:
    """Dead letters of which there will still be news."""
    if job.action not in DELIVERING:
        return 0
    return waiting_of(counts) + counts.get(Outcome.FAILED_AGAIN, 0)


def moved_word(job: ReplayJob) -> str:
    return {
        Action.GIVE_BACK: gettext("replayed"),
        Action.REDIRECT: gettext("redirected"),
        Action.DISCARD: gettext("moved to the trash"),
        Action.PUT_BACK: gettext("restored"),
        Action.EDIT: gettext("edited and replayed"),
    }[Action(job.action)]


BACK = StateLabel(gettext_lazy("not moved, back in its queue"), "warn", "letter")


def is_back(item: ReplayItem) -> bool:
    """Another consumer had the dead letter and let go of it: nobody took it, it is in its queue."""
    return item.state == ItemState.TAKEN_ELSEWHERE and item.letter.state == LetterState.DEAD


def item_label(job: ReplayJob, state: str) -> StateLabel:
    """Returns how the state of one dead letter of this job looks: what is moved into the trash was not given
    back."""
    icon = "trash" if job.action == Action.DISCARD else "back"
    return StateLabel(moved_word(job), "info", icon) if state == ItemState.GIVEN_BACK else ITEMS[state]


def replay_bars(job: ReplayJob, counts: Mapping[str, int]) -> list[Bar]:
    """Returns what was moved, and of that what became of it; then what could not be, where there is any."""
    moved, planned = counts.get(ItemState.GIVEN_BACK, 0), counts.get(ItemState.PLANNED, 0)
    elsewhere, unconfirmed = counts.get(ItemState.TAKEN_ELSEWHERE, 0), counts.get(ItemState.UNCONFIRMED, 0)
    unknown = counts.get(Outcome.UNKNOWN, 0)
    lost = counts.get(ItemState.NOT_FOUND, 0) + counts.get(ItemState.FAILED_TO_MOVE, 0)
    cancelled = counts.get(ItemState.CANCELLED, 0)
    total = max(job.total, moved + unconfirmed + elsewhere + lost + planned + cancelled, 1)

    def bar(label: Text, count: int, tone: str, show: str) -> Bar:
        return Bar(label, count, total, tone, show)

    shown = [bar(moved_word(job), moved, "info", "given_back")]
    if job.action in DELIVERING:
        shown += [
            bar(gettext("processed"), counts.get(Outcome.HANDLED, 0), "ok", "handled"),
            bar(
                gettext("failed again, will be retried"),
                counts.get(Outcome.FAILED_AGAIN, 0),
                "warn",
                "failed_again",
            ),
            bar(gettext("dead-lettered again"), counts.get(Outcome.DEAD_AGAIN, 0), "bad", "dead_again"),
            bar(gettext("waiting for processing"), waiting_of(counts), "off", "waiting"),
        ]
    rest = [
        bar(gettext("unknown: no report for an hour"), unknown, "warn", "unknown"),
        bar(gettext("unconfirmed: left the queue, target unknown"), unconfirmed, "warn", "unconfirmed"),
        bar(gettext("taken by another consumer"), elsewhere, "warn", "taken_elsewhere"),
        bar(gettext("not moved yet"), planned, "off", "planned"),
        bar(gettext("not moved"), lost, "bad", "not_moved"),
        bar(gettext("cancelled before the move"), cancelled, "off", "cancelled"),
    ]
    return shown + [each for each in rest if each.count]


WAITS = {
    "outcomes": lambda: gettext("The job is waiting for the outcomes of this step."),
    "heartbeat": lambda: gettext("The job is waiting for the next heartbeat of the setting's servers."),
    "window": lambda: gettext("The job is waiting for its time window."),
    "rate": lambda: gettext("The job is waiting because of its rate limit."),
    "stopping": lambda: gettext(
        "The setting is stopping: the job waits up to 60 s for the consumers to close."
    ),
    "blocked": lambda: gettext(
        "A message is blocking the other setting's ordered subscription. The job waits up to "
        "60 s for the subscription to be unblocked."
    ),
    "walk": lambda: gettext(
        "The job is waiting for the scan of the target queue to finish. Other jobs use the same scan."
    ),
    "another_job": lambda: gettext("The job is waiting: another job is moving messages from the same queue."),
    "queued": lambda: gettext("The job is queued: no worker has picked it up yet."),
    "retry": lambda: gettext("The job failed and will restart within 30 s."),
    "held_by_another": lambda: gettext("The job is waiting: the subscription is on hold for another replay."),
    "letting_go": lambda: gettext("The job is waiting until the consumers release the subscription."),
    "ahead": lambda: gettext("The job is waiting until the moved messages are processed."),
    "hold_ends": lambda: gettext("The job is waiting for the subscription to be released."),
    "feed": lambda: gettext(
        "The job is waiting for the indexer to catch up. Only then can it determine which "
        "messages left the queue."
    ),
}


def why_it_waits(job: ReplayJob, now: datetime) -> str:
    """The engine's stable word in words; what is no such word is text already. Empty for a walk: see
    `walk_of`."""
    code = reason_to_wait(job, now)
    word, _separator, rest = code.partition(":")
    if word == WALKING:
        return ""
    return f"{WAITS[word]()} {rest.strip()}".strip() if word in WAITS else code


def walk_of(job: ReplayJob) -> str:
    text = ngettext(
        "The job is scanning the queue %(queue)s. %(n)s message scanned so far.",
        "The job is scanning the queue %(queue)s. %(n)s messages scanned so far.",
        job.walked,
    )
    return text % {"queue": job.walking_queue, "n": number(job.walked)}


def walk_of_other(job: ReplayJob) -> str:
    text = ngettext(
        "That job is scanning the queue %(queue)s. %(n)s message scanned so far.",
        "That job is scanning the queue %(queue)s. %(n)s messages scanned so far.",
        job.walked,
    )
    return text % {"queue": job.walking_queue, "n": number(job.walked)}


def why_paused(job: ReplayJob) -> str:
    """Empty where a person paused it."""
    why = job.pause_reason
    if why.get("code") == TARGET_BLOCKED:
        text = gettext("A message (attempt %(n)s) is blocking the ordered subscription of “%(key)s”.")
        return text % {"key": job.target_key, "n": number(int(why.get("attempt", 0)))}
    if why.get("code") != CONSUMERS_OPEN:
        return ""
    count = int(why.get("consumers", 0))
    text = ngettext(
        "Stopping, %(n)s consumer open: it did not close within 60 s and could process the "
        "replayed messages.",
        "Stopping, %(n)s consumers open: they did not close within 60 s and could process the "
        "replayed messages.",
        count,
    )
    names = ", ".join(why.get("servers", ()))
    servers = (
        gettext("Servers: %(names)s.") % {"names": names}
        if names
        else gettext("The setting has no open instances, so the consumers belong to another client.")
    )
    return f"{text % {'n': number(count)}} {servers}"


def waits_for_consumers(job: ReplayJob) -> bool:
    """Its setting is disabled and not stopped: nobody may say that what it moves waits there."""
    if job.state == JobState.PAUSED:
        return bool(job.pause_reason.get("code") == CONSUMERS_OPEN)
    return job.state in OPEN_JOBS and job.wait_reason.partition(":")[0] == STOPPING


def skipped_rows(job: ReplayJob) -> list[tuple[str, str, int]]:
    """Word, why, and how many, the most first."""
    ranked = sorted(job.skipped.items(), key=lambda pair: -int(pair[1]))
    return [(code, reason(code), int(count)) for code, count in ranked if count]


def how(job: ReplayJob) -> list[Fact]:
    """Returns how it goes about its dead letters; only what somebody chose."""
    facts = _order(job)
    if job.per_second:
        facts.append(Fact(gettext("At most"), gettext("%(n)s per second") % {"n": number(job.per_second, 2)}))
    if job.window_from is not None and job.window_until is not None:
        between = {"from": time_format(job.window_from, "H:i"), "until": time_format(job.window_until, "H:i")}
        facts.append(
            Fact(
                gettext("Time window"),
                gettext("from %(from)s to %(until)s") % between,
                gettext("server time"),
            )
        )
    if job.ladder:
        now_at = gettext("step %(step)s: %(n)s") % {
            "step": number(job.ladder_step + 1),
            "n": _step(job.ladder_step),
        }
        stops = gettext(
            "Stops automatically when more than %(n)s%% of the messages in a step fail again."
        ) % {"n": number(job.ladder_percent)}
        facts.append(Fact(gettext("Ladder"), now_at, stops))
    return facts


def _order(job: ReplayJob) -> list[Fact]:
    if not job.in_order:
        return []
    held = gettext("The subscription is held for at most %(n)s min.") % {"n": number(job.hold_minutes)}
    place = job.get_in_order_display()
    return [Fact(gettext("Publishing order"), place, held if job.hold_minutes else "")]


def rule(job: ReplayJob, masks: Masks) -> list[Fact]:
    """Returns what an edit does to each dead letter; masked values are not told."""
    if not job.edit_rule:
        return []
    names = masks.names_of([job.setting_key])
    return [
        Fact(str(OPERATION_WORDS[each["op"]]), visible_html(f"{each['place']} = {each['value']}", limit=200))
        if each["value"]
        else Fact(str(OPERATION_WORDS[each["op"]]), visible_html(each["place"], limit=200))
        for each in describe_rule(rule_of(job.edit_rule), names)
    ]


def _step(step: int) -> str:
    size = step_size(step)
    return ngettext("%(n)s message", "%(n)s messages", size) % {"n": number(size)}
