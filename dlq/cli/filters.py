"""Describes which dead letters `manage.py dlq list|show|export` are about: the filter of the address bar,
whole or field by field.

Without a person it finds any dead letter, but none by what is masked; with one, what this person finds on the
pages.
"""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.core.management.base import CommandError, CommandParser
from django.http import QueryDict

from agents.models import LaunchSetting
from contract.names import dead_letter_queue
from dlq import exports
from dlq.cli.rest import person_named
from dlq.dead_letters.masks import Masks, everybodys_masks, masks_for
from dlq.models import DeadLetter, LetterState
from dlq.search.filter import LetterFilter
from dlq.search.newest import newest
from dlq.search.visibility import letters_for

AS = "show what this user may see; default: mask all masked values"
WHOLE = "filter"
HELP = {
    "setting": "only dead letters of this setting",
    "destination": "only settings of this destination",
    "queue": "only this dead-letter queue",
    "exception": "exception type contains this text",
    "text": "words in body or properties; * matches the end of a word",
    "prop": "property with this value; repeatable",
    "span": "dead-lettered within this time span: 1h, 1d, …",
    "since": "dead-lettered at or after this time: 2026-03-01T06:00:00+00:00",
    "until": "dead-lettered before this time",
    "server": "failed on this server",
    "activation": "failed in this activation",
    "muted": "yes: only known errors; no: without known errors",
    "state": f"{', '.join(LetterState.values)} or every; default: dead",
    "fingerprint": "error group",
    "exception_type": "exact exception type",
    "message_key": "all dead letters of this message",
    "without": "value unknown: fingerprint, exception_type, server or activation",
}


def add_filter_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        f"--{WHOLE}", "--query", dest=WHOLE, default="", metavar="FILTER",
        help="query string of the list: exception=KeyError&span=1d",
    )  # fmt: skip
    for name in LetterFilter.base_filters:
        more: dict[str, Any] = {"action": "append", "metavar": "NAME=VALUE"} if name == "prop" else {}
        parser.add_argument(f"--{name.replace('_', '-')}", help=HELP.get(name), **more)
    parser.add_argument("--as", dest="person", metavar="USER", help=AS)


@dataclass(frozen=True, slots=True)
class CliSelection:
    """`query` is the filter as in an address, `key` the setting that it names."""

    query: str
    key: str
    person: User | None
    masks: Masks
    step: exports.Step

    def numbers(self, before: int | None, most: int) -> list[int]:
        """Newest first; a step looks only for so long."""
        found: list[int] = []
        while True:
            some = self.step(before, most - len(found))
            found += some.places
            if some.stopped_at is None or len(found) >= most:
                return found
            before = some.stopped_at


def person_of(options: dict[str, Any]) -> User | None:
    """Raises CommandError."""
    return person_named(options["person"]) if options["person"] is not None else None


def masks_of(person: User | None) -> Masks:
    return masks_for(person) if person else everybodys_masks()


def selection_of(options: dict[str, Any]) -> CliSelection:
    """Raises CommandError for a filter that is not understood."""
    data = said(options)
    person = person_of(options)
    asked = data.copy()
    if not asked.get("state"):
        asked["state"] = LetterState.DEAD.value
    rows = letters_for(person) if person else DeadLetter.objects.all()
    filters = LetterFilter(asked, rows, user=person or AnonymousUser())
    if not filters.is_valid():
        raise CommandError("; ".join(_problems(filters)))
    key = str(data.get("setting") or "")
    if key and not _is_known(key):
        raise CommandError(f"There is no setting {key!r}; ./ma manage settings list shows them.")
    return CliSelection(data.urlencode(), key, person, filters.masks, _step(filters, person))


def _is_known(key: str) -> bool:
    """One that is gone may have left dead letters."""
    letters = DeadLetter.objects.filter(queue=dead_letter_queue(key))
    return LaunchSetting.objects.filter(key=key).exists() or letters.exists()


def said(options: dict[str, Any]) -> QueryDict:
    """Raises CommandError for what is said in both ways, or without a value."""
    data = QueryDict(options[WHOLE].lstrip("?")).copy()
    for name in LetterFilter.base_filters:
        value = options[name]
        if value is None:
            continue
        if name in data:
            raise CommandError(
                f"{name}: in --{WHOLE} and as --{name.replace('_', '-')}: use only one of them."
            )
        data.setlist(name, value if isinstance(value, list) else [value])
    for name, problem in LetterFilter.unclear(data).items():
        raise CommandError(f"{name}: {problem}")
    return data


def _step(filters: LetterFilter, person: User | None) -> exports.Step:
    if person is not None:
        return exports.of_filter(filters, person)
    if not filters.asked.conditions:  # an index of queues and states has their order
        return exports.of_rows(DeadLetter.objects.filter(filters.asked.places))
    return lambda before, size: newest(DeadLetter.objects.all(), filters.asked, before=before, size=size)


def _problems(filters: LetterFilter) -> list[str]:
    named = filters.form.errors.items()
    return [f"{'' if name == '__all__' else f'{name}: '}{' '.join(map(str, why))}" for name, why in named]
