"""Dead letters and replays as text for a terminal. Pure.

Every text of a message is hostile: nothing in it may move the cursor, colour the screen or turn the direction
around.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from console.exports import iso_instant
from console.ui.text import INVISIBLE

KEY_SHOWN = 40
HEAD_SHOWN = 2000
SENTENCE_SHOWN = 160

# Words for dead letters that a job moved; for every other action: replayed.
MOVED = {"redirect": "redirected", "discard": "moved to the trash", "put_back": "restored"}
# Moved, and nothing becomes of them by that.
NO_OUTCOME = ("discard", "put_back")
NOT_MOVED = ("not_found", "failed_to_move")
# Codes of outcomes that read badly as words.
WORDS = {"handled": "processed", "dead_again": "dead-lettered again"}

Row = Mapping[str, Any]


def safe(text: str, limit: int, *, several: bool = False) -> str:
    """Returns at most `limit` characters; what is invisible is spelled out, of `several` lines not their ends
    and tabs."""
    shown = "".join(_spelled(character, several) for character in text[:limit])
    return f"{shown} … +{len(text) - limit}" if len(text) > limit else shown


def _spelled(character: str, several: bool) -> str:
    if several and character in "\n\t":
        return character
    if unicodedata.category(character) not in INVISIBLE:
        return character
    return character.encode("unicode_escape").decode("ascii")


def dead_letter_line(row: Row) -> str:
    """One dead letter in one line; `row` has dlq.exports.LISTED."""
    died_of = row["exception_type"] or row["problem"] or "no protocol"
    seen = row["seen_at"].strftime("%Y-%m-%d %H:%M:%S")
    queue, key = safe(row["queue"], KEY_SHOWN), safe(row["message_key"] or "no key", KEY_SHOWN)
    return f"{row['id']:>8}  {seen}  {queue}  {row['state']}  {safe(died_of, SENTENCE_SHOWN)}  {key}"


def dead_letter_lines(letter: Row) -> Iterator[str]:
    """One dead letter; `letter` has dlq.exports.EXPORTED, HEAD and `protocols`."""
    weak = " (weak)" if letter["message_key_weak"] else ""
    yield f"message    {letter['id']}, {letter['state']}, times dead-lettered: {letter['chapter']}"
    since = iso_instant(letter["seen_at"])
    yield f"queue      {safe(letter['queue'], SENTENCE_SHOWN)}, dead-lettered {since}"
    yield f"key        {safe(letter['message_key'] or 'none', SENTENCE_SHOWN)}{weak}"
    address, queue = (safe(letter[name] or "?", SENTENCE_SHOWN) for name in ("address", "orig_queue"))
    yield f"origin     address {address}, queue {queue}, message id {letter['orig_message_id']}"
    yield f"delivered  {letter['delivery_count']} times, all failed"
    yield f"exception  {safe(letter['exception_type'] or 'no protocol', SENTENCE_SHOWN)}"
    if letter["problem"]:
        yield f"problem    {safe(letter['problem'], SENTENCE_SHOWN)}"
    yield from (f"protocol   {protocol(each)}" for each in letter["protocols"])
    deleted = (
        f", deleted by retention {iso_instant(letter['body_deleted_at'])}"
        if letter["body_deleted_at"]
        else ""
    )
    yield f"body       {letter['size']} bytes{deleted}"
    if not letter["body_kind"]:
        yield "The bytes are not a readable message; they are not shown, as they may contain properties."
    yield safe(letter["body_text"], HEAD_SHOWN, several=True)


def protocol(row: Row) -> str:
    text = safe(" ".join(row["exception_text"].split()), SENTENCE_SHOWN)
    kind, place = safe(row["exception_type"], SENTENCE_SHOWN), safe(row["place"] or "?", SENTENCE_SHOWN)
    return (
        f"{iso_instant(row['occurred_at'])}  {row['server_name']}  attempt {row['attempt']}  "
        f"{kind}: {text}  at {place}"
    )


def progress(job: Row) -> str:
    """One line; `job` as in the REST interface."""
    moved = MOVED.get(job["action"], "replayed")
    least = "" if job.get("counted", True) else "at least "
    parts = [f"{job['state']}: {job['letters']['given_back']} of {least}{job['total']} {moved}"]
    if job["action"] not in NO_OUTCOME:
        parts += _counted(job["outcomes"].items())
    parts += _counted((name, job["letters"][name]) for name in ("unconfirmed", "taken_elsewhere", *NOT_MOVED))
    return ", ".join(parts)


def seconds(count: float) -> str:
    """`45 s`, `3 min`, `2.5 h`."""
    if count < 90:
        return f"{count:.0f} s"
    return f"{count / 60:.0f} min" if count < 5400 else f"{count / 3600:.1f} h"


def job(row: Row) -> str:
    """One job in one line."""
    by = safe(row["by"] or "-", KEY_SHOWN)
    return (
        f"{row['id']}  {row['created_at'][:19]}  {row['action']}  "
        f"{safe(row['setting'], 61)}  {by}  {progress(row)}"
    )


def job_lines(answer: Row) -> Iterator[str]:
    """`answer` as in the REST interface."""
    yield f"job        {answer['id']}, {answer['action']}, {answer['scope']} of {safe(answer['setting'], 61)}"
    yield (
        f"from, to   {safe(answer['source_queue'], SENTENCE_SHOWN)}, "
        f"{safe(answer['target_queue'], SENTENCE_SHOWN)}"
    )
    yield f"by         {safe(answer['by'] or '-', KEY_SHOWN)}, {answer['created_at']}"
    if answer["query"]:
        yield f"filter     {safe(answer['query'], HEAD_SHOWN)}"
    if answer["reason"]:
        yield f"reason     {safe(answer['reason'], HEAD_SHOWN)}"
    if answer["in_order"]:
        yield f"in order   {answer['in_order']}{_held(answer)}"
    if answer["needs_second"]:
        yield f"approved   {safe(answer['approved_by'] or 'not yet', KEY_SHOWN)}"
    yield f"state      {progress(answer)}"
    if answer["wait_reason"]:
        yield f"waiting    {safe(answer['wait_reason'], SENTENCE_SHOWN)}"
    if answer["walk"]:
        yield f"scan       {walk_line(answer['walk'])}, since {answer['walk']['since']}"
    if why := answer["pause_reason"]:
        yield f"paused     {why.get('code')}: {_in_the_way(why)}"
    if answer["problem"]:
        yield f"problem    {safe(answer['problem'], HEAD_SHOWN)}"
    yield from (f"skipped    {count} {safe(why, KEY_SHOWN)}" for why, count in answer["skipped"].items())


def _in_the_way(why: Row) -> str:
    if "attempt" in why:
        return f"a message of {safe(str(why.get('setting')), KEY_SHOWN)} at attempt {why['attempt']}"
    names = safe(", ".join(why.get("servers", ())) or "external client", SENTENCE_SHOWN)
    return f"{why.get('consumers')} consumers, {names}"


def _held(answer: Row) -> str:
    if not answer["held_at"]:
        return ""
    until = "" if answer["hold"] == "over" else f", until {answer['hold_until']} at most"
    return f", subscription {answer['hold']} since {answer['held_at']}{until}"


def walk_line(row: Row) -> str:
    """Returns the walk of a job in one line, as the REST interface has it."""
    return f"{safe(row['queue'], SENTENCE_SHOWN)}: {row['seen']} messages read"


def verdict(answer: Row) -> Iterator[str]:
    """A pre-flight as in the REST interface."""
    if answer["about"]:
        yield f"included   at least {answer['going']}, others were not checked"
    else:
        yield f"included   {answer['going']} of {answer['total']}"
    yield from (f"skipped    {count}: {answer['reasons'][code]}" for code, count in answer["skipped"].items())
    for each in answer["differences"]:
        yield f"difference {safe(each['text'], HEAD_SHOWN)}"
    yield from (f"warning    {warning['code']}: {warning['text']}" for warning in answer["warnings"])


def end_of_scope(newest: int) -> str:
    return f"newest     message {newest}: to leave out later ones, add --up-to {newest}"


def group(row: Row) -> str:
    """One group in two lines: how many of what, and the filter that finds them."""
    what = safe(row["value"] or "unknown", SENTENCE_SHOWN)
    kind = safe(" ".join(filter(None, [row["exception_type"], row["place"]])), SENTENCE_SHOWN)
    about = "~" if row["about"] else ""
    return (
        f"{about + str(row['count']):>8}  {what}  {kind}\n          --query "
        f"'{safe(row['query'], HEAD_SHOWN)}'"
    )


def _counted(counts: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{count} {WORDS.get(name, name.replace('_', ' '))}" for name, count in counts if count]
