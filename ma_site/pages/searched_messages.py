"""Messages and failures that the search box finds, by where each message is now: what is dead-lettered, what
is still retried, what was processed in the end."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from agents.pools.rights import may_anywhere
from console.database.texts import parted
from console.lists.keyset import number_in
from console.ui.page import Text, link
from dlq import rights
from dlq.models import DeadLetter, LetterState, ReplayItem
from dlq.outcomes.places import places_of, word_of
from dlq.replay.operations import title as title_of_job
from dlq.search.visibility import found, letters_for, newest_found
from dlq.trash.queries import edited_copies
from failures.models import FailureProtocol, RecoveredMessage
from failures.pages import protocols
from failures.pages.protocol_table import case_url
from failures.protocols.filter import ProtocolFilter
from failures.protocols.messages import Case, MessageState, message_states
from failures.protocols.search import newest, protocols_at

# Hits of one way to look; the lists have the others.
MOST = 8
# Failures of one way: a message may have many, of which one is shown.
LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class Hit:
    """`at`: when it was dead-lettered, or failed. `more`: text and address of what else is known of it."""

    text: Text
    url: str
    note: Text = ""
    at: datetime | None = None
    more: Sequence[tuple[Text, str]] = ()


@dataclass(slots=True)
class Section:
    """Hits of one kind. `more`: text and address of each list with all of them; `failures`
    are so many of the hits."""

    title: Text
    hits: list[Hit] = field(default_factory=list)
    more: list[tuple[Text, str]] = field(default_factory=list)
    failures: int = 0


@dataclass(slots=True)
class Results:
    """Sections by state of the message; None: failures of which it is not known. `unfinished`: text and
    address of each list that goes on where the time of a search was over."""

    sections: Mapping[MessageState | None, Section]
    unfinished: list[tuple[Text, str]] = field(default_factory=list)


# -- how a text is looked for --------------------------------------------------------------------------------


# One way to look for a text: the fields of a filter. What it finds has exactly this value, or only its words.
Way = Mapping[str, str]


class Ways(NamedTuple):
    """All exact ones are asked; of those by text the first that finds anything is enough."""

    exact: Sequence[Way]
    in_letters: Sequence[Way]
    in_failures: Sequence[Way]


# Letters or digits with anything else between them, as order numbers, names of files and times have them.
_COMPOUND = re.compile(r"\w[^\w\s]+\w")


def ways_of(text: str) -> Ways:
    """Pure. Of what has a hyphen or another sign inside, the parts next to each other are meant, never its
    parts anywhere: these are of other orders."""
    if parted(text)[0]:
        quoted = [{"text": text}]
        return Ways([{"message_key": text}], quoted, quoted)
    named = {"prop": text} if "=" in text else {"value": text}
    by_text = _one_word(text) if text.split() == [text] else [{"text": text}]
    # A failure has its text as it stands; the index of dead letters has words only.
    by_words = [{"text": _with_phrases(text)}] if by_text == [{"text": text}] else by_text
    return Ways([{"message_key": text}, named], by_words, by_text)


def _one_word(text: str) -> list[Way]:
    if text.endswith("*"):
        return [{"text": text}]
    phrase = {"text": _quoted(text)}
    return [phrase] if _COMPOUND.search(text) else [phrase, {"text": text}]


def _with_phrases(text: str) -> str:
    return " ".join(
        _quoted(word) if _COMPOUND.search(word) and not word.endswith("*") else word for word in text.split()
    )


def _quoted(word: str) -> str:
    return f"«{word}»" if '"' in word else f'"{word}"'


def _note(way: Way) -> Text:
    """Says how a hit by this way was found."""
    text = way.get("text")
    if text is None:
        return _("exact value")
    phrases, rest = parted(text)
    return _("contains these words") if rest or not phrases else _("contains this text")


# -- sections by the state of a message ----------------------------------------------------------------------


def by_state(text: str, user: Any) -> Results:
    """In the order of what a person has to do with them; exact ones first in each."""
    sections: dict[MessageState | None, Section] = {state: Section(_title(state)) for state in ORDER}
    results = Results({**sections, None: Section(_("Failures"))})
    if may_anywhere(user, rights.SEE):
        _add_letters(results, text, user)
    if user.has_perm(protocols.VIEW):
        _add_failures(results, text, user)
    return results


ORDER = (
    MessageState.DEAD,
    MessageState.RETRIED,
    MessageState.REPLAYED,
    MessageState.RECOVERED,
    MessageState.ELSEWHERE,
    MessageState.DISCARDED,
    MessageState.IN_TRASH,
    MessageState.GONE,
)


def _title(state: MessageState) -> Text:
    return _("Messages: %(state)s") % {"state": state.label}


# -- dead letters --------------------------------------------------------------------------------------------


NUMBER: Way = {"number": ""}


def _add_letters(results: Results, text: str, user: Any) -> None:
    ways = ways_of(text)
    found_by: dict[int, Way] = {}
    if number := number_in(text):
        there = letters_for(user).filter(pk=number)
        found_by |= dict.fromkeys(there.values_list("pk", flat=True), NUMBER)
    first: Way | None = None
    for way in ways.exact:
        some = _letters(results, way, user)
        found_by |= dict.fromkeys(some, way)
        first = first or (way if some else None)
    for way in ways.in_letters:
        if some := _letters(results, way, user):
            found_by = dict.fromkeys(some, way) | found_by
            first = first or way
            break
    exact_first = sorted(found_by, key=lambda pk: ("text" in found_by[pk], -pk))
    rows = DeadLetter.objects.in_bulk(exact_first)
    places = places_of({(row.setting_key, row.message_key) for row in rows.values() if row.message_key})
    copies = edited_copies(rows.values())
    for row in (rows[pk] for pk in exact_first if pk in rows):
        section = results.sections[_state_of(row, places)]
        section.hits.append(_letter(row, found_by[row.pk], copies.get(row.pk), user))
        if first is not None and not section.more:
            section.more.append((_("All messages"), _list_of_letters(first, row)))


def _letters(results: Results, way: Way, user: Any) -> list[int]:
    query = urlencode({**way, "state": "every"})
    filters, _rows = found(query, user)
    if not filters.is_valid():
        return []
    some = newest_found(filters, user, size=MOST)
    if some.stopped_at is not None:
        results.unfinished.append((_("All messages"), f"{link('all_dead_letters')}?{query}"))
    return some.places


def _list_of_letters(way: Way, row: DeadLetter) -> str:
    if row.is_in_trash:
        return f"{link('bin')}?{urlencode(way)}"
    return f"{link('all_dead_letters')}?{urlencode({**way, 'state': row.state})}"


def _state_of(row: DeadLetter, places: Mapping[Case, tuple[str, datetime]]) -> MessageState:
    """An older one was replayed though its message died again. What was moved into the trash has a row of its
    own there."""
    if row.is_in_trash:
        return MessageState.IN_TRASH
    place = places.get((row.setting_key, row.message_key))
    recovered = place is not None and place[0] == MessageState.RECOVERED.value
    if row.state == LetterState.GIVEN_BACK and recovered and not row.message_key_weak:
        return MessageState.RECOVERED
    return MessageState(word_of(row.state))


def _letter(row: DeadLetter, way: Way, copy: ReplayItem | None, user: Any) -> Hit:
    replayed = _("an edited copy was replayed") if copy else ""
    words = (row.setting_key, row.exception_type, replayed, "" if way is NUMBER else _note(way))
    seen = copy is not None and user.has_perm(rights.SEE_REPLAYS)
    more = [(title_of_job(copy.job), link("replay", copy.job_id))] if copy and seen else []
    return Hit(_("Message %(n)s") % {"n": row.pk}, link("letter", row.pk), _joined(words), row.seen_at, more)


# -- failures, and what recovered ----------------------------------------------------------------------------


def _add_failures(results: Results, text: str, user: Any) -> None:
    ways = ways_of(text)
    found_by: dict[Any, tuple[FailureProtocol, Way]] = {}
    url = ""
    for way in ways.exact:
        found_by |= {row.pk: (row, way) for row in _failures(results, way, user)}
        url = url or (_list_of_failures(way) if found_by else "")
    for way in ways.in_failures:
        if some := _failures(results, way, user):
            found_by = {row.pk: (row, way) for row in some} | found_by
            url = url or _list_of_failures(way)
            break
    hits = sorted(found_by.values(), key=lambda each: ("text" in each[1], -each[0].occurred_at.timestamp()))
    newest_ones = _newest_of_each(row for row, _way in hits)
    states = message_states(newest_ones.values())
    sees_cases = may_anywhere(user, rights.SEE)
    seen: set[Case] = set()
    for row, way in hits:
        case = row.setting_key, row.message_key
        state = None if row.message_key_weak else states.get(case)
        section = results.sections[state]
        if case in seen or section.failures == MOST:
            continue
        if row.message_key:  # a message fails often; its newest failure leads to the others
            seen.add(case)
            row = newest_ones[case]
        section.failures += 1
        section.hits.append(_failure(row, way, state, sees_cases))
        if (_("All failures"), url) not in section.more:
            section.more.append((_("All failures"), url))
    _add_recovered(results.sections[MessageState.RECOVERED], text, seen)


def _newest_of_each(rows: Iterable[FailureProtocol]) -> dict[Case, FailureProtocol]:
    found: dict[Case, FailureProtocol] = {}
    for row in rows:
        known = found.get(case := (row.setting_key, row.message_key))
        if known is None or row.occurred_at > known.occurred_at:
            found[case] = row
    return found


def _failures(results: Results, way: Way, user: Any) -> Sequence[FailureProtocol]:
    filters = ProtocolFilter(way, user=user)
    if filters.problem:
        return []
    some = newest(filters.asked, LOOKED_AT)[0]
    if some.stopped_at is not None:
        results.unfinished.append((_("All failures"), _list_of_failures(way)))
    return protocols_at(some.places)


def _list_of_failures(way: Way) -> str:
    return f"{link('protocols')}?{urlencode(way)}"


def _failure(row: FailureProtocol, way: Way, state: MessageState | None, sees_cases: bool) -> Hit:
    words = (
        f"{row.setting_key} · {row.server_name}",
        _("attempt %(n)s") % {"n": row.attempt},
        state.label if state is not None else "",
        _("contains this text") if "text" in way else _note(way),
    )
    more = [(_("Case file"), case_url(row))] if row.message_key and sees_cases else []
    name = _("Failure: %(type)s") % {"type": row.exception_type}
    return Hit(name, link("protocol", row.pk), _joined(words), row.occurred_at, more)


def _add_recovered(section: Section, text: str, seen: Iterable[Case]) -> None:
    """Those of which no failure is left."""
    known = set(seen)
    for row in RecoveredMessage.objects.filter(message_key=text).order_by()[:MOST]:
        if (case := (row.setting_key, row.message_key)) not in known:
            known.add(case)
            key = FailureProtocol(setting_key=case[0], message_key=case[1])
            section.hits.append(Hit(row.message_key, case_url(key), row.setting_key, row.occurred_at))


def _joined(words: Iterable[Text]) -> str:
    return " · ".join(str(word) for word in words if word)
