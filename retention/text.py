"""Describes what a run did or would do, as rows for programs and lines for people. English: for terminals and
logs."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from contract.names import HISTORY_KEY
from retention.ages.limits import AgePreview
from retention.models import RetentionFigure
from retention.preview import Preview
from retention.rules import Rule, none_finished

Row = dict[str, Any]

WHY = {
    Rule.WELL.value: "the last finished activation finished well: all up to it",
    Rule.ERROR.value: "the last finished activation finished with an error: what is older than {before}",
    Rule.SILENT.value: "nothing finished for long: what is older than {before}",
    "age": "what is older than {before}",
}

# One of it, and several.
WORDS = {
    "protocols": ("protocol", "protocols"),
    "recovered": ("recovered message", "recovered messages"),
    "runs": ("run", "runs"),
    "activations": ("activation", "activations"),
    "groups": ("count of an unknown activation", "failure counts of unknown activations"),
    "fingerprints": ("fingerprint", "fingerprints"),
    "replays": ("replay", "replays"),
    "replay_items": ("replay item", "replay items"),
    "replay_slices": ("replay slice", "replay slices"),
    "dead_letters": ("dead letter that left its queue", "dead letters that left their queues"),
    "letter_bodies": (
        "body of a dead letter that left its queue",
        "bodies of dead letters that left their queues",
    ),
    "edited_bodies": ("copy of an edit", "edited copies"),
    "audit": ("audit entry", "audit entries"),
    "alerts": ("alert", "alerts"),
    "refused": ("refused record", "refused records"),
    "conflicts": ("conflicting record", "conflicting records"),
    "answers": ("answered delivery", "answered deliveries"),
}


# Each is of a setting, or of none.
OF_SETTINGS = frozenset({"protocols", "recovered", "dead_letters", "letter_bodies", "edited_bodies"})


def counted(number: int, what: str) -> str:
    one, several = WORDS.get(what, (what, what))
    return f"{number} {one if number == 1 else several}"


def of_figure(figure: RetentionFigure) -> Row:
    return {
        "what": figure.what,
        "setting": figure.setting_key,
        "rule": figure.rule,
        "older_than": figure.before.isoformat() if figure.before else None,
        "deleted": figure.deleted,
        "kept": figure.kept_for,
    }


def of_preview(foreseen: Preview) -> Row:
    before = foreseen.of.before
    return {
        "what": "protocols",
        "setting": foreseen.setting_key,
        "rule": foreseen.of.rule.value,
        "older_than": before.isoformat() if before else None,
        "would_go": foreseen.going,
        "kept": foreseen.kept,
        "at_least": foreseen.cut,
    }


def of_age_preview(going: AgePreview) -> Row:
    return {
        "what": going.what,
        "setting": going.setting_key,
        "rule": "age",
        "older_than": going.before.isoformat(),
        "would_go": going.count,
        "kept": dict(going.kept),
        "at_least": going.cut,
    }


def _why(row: Row) -> str:
    return WHY.get(row["rule"], "").format(before=(row["older_than"] or "")[:16])


def retention_line(row: Row) -> str:
    """One line of a terminal."""
    about = f"{row['setting'] or '(no setting)'}: " if row["what"] in OF_SETTINGS else ""
    if "would_go" in row:
        number = f"{'at least ' if row['at_least'] else ''}{counted(row['would_go'], row['what'])} would go"
    else:
        number = f"{counted(row['deleted'], row['what'])} deleted"
    why = _why(row)
    kept = ", ".join(f"{count} kept ({reason})" for reason, count in row["kept"].items())
    return about + "; ".join(filter(None, [number, kept, why]))


def nothing_line(key: str, foreseen: Sequence[Preview]) -> str:
    """Says why the ranges of a setting (empty: of none), all of them here, hold nothing."""
    ranges = [each.of for each in foreseen]
    if key == HISTORY_KEY:
        why = ["the demo made it up: ./ma manage demo_history --remove"]
    elif key and none_finished(ranges):
        why = ["no activation has finished yet"]
        why += [f"nothing is older than {each.before:%Y-%m-%dT%H:%M}" for each in ranges if each.before]
    else:
        why = [_why(of_preview(each)) for each in foreseen] or ["nothing goes by its age alone"]
    return f"{key or '(no setting)'}: nothing would go; {'; '.join(why)}"


def rule_in_force() -> Row:
    """The numbers of the rule: N and C in days; C 0: nothing goes by its age alone."""
    return {
        "days": settings.MA_RETENTION_DAYS,
        "silent_days": settings.MA_RETENTION_SILENT_DAYS,
        "keep_dead": settings.MA_RETENTION_KEEP_DEAD,
    }


def periods_in_force() -> dict[str, int]:
    """Days of what has a period of its own; 0: unlimited."""
    return {
        "activations": settings.MA_KEEP_ACTIVATIONS_DAYS,
        "runs": settings.MA_KEEP_RUNS_DAYS,
        "dead_letters": settings.MA_KEEP_DEAD_LETTERS_DAYS,
        "letter_bodies": settings.MA_KEEP_DEAD_LETTER_BODIES_DAYS,
        "replays": settings.MA_KEEP_REPLAYS_DAYS,
        "audit": settings.MA_KEEP_AUDIT_DAYS,
        "alerts": settings.MA_KEEP_ALERTS_DAYS,
        "refused": settings.MA_KEEP_REFUSED_DAYS,
        "answers": settings.MA_KEEP_ANSWERS_DAYS,
    }
