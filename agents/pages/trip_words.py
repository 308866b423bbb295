"""Trips, interruptions and what was done at a trip, in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import BreakerTrip, Interruption
from agents.pools.rights import may
from console.ui.amounts import number
from console.ui.page import link
from console.ui.text import masked
from contract.breaker import TripReason


def cause(reason: str, kind: str, same: int, every: int, servers: Sequence[str]) -> str:
    """`3 × KeyError in a row on srv-2, srv-3`."""
    facts = {"type": kind or _("a failure"), "servers": ", ".join(servers) or "—"}
    if reason == TripReason.SAME_TYPE.value and same:
        return _("%(n)s × %(type)s in a row on %(servers)s") % {**facts, "n": number(same)}
    if reason == TripReason.SAME_TYPE.value:
        return _("%(type)s again and again on %(servers)s") % facts
    if reason == TripReason.TRIAL.value:
        return _("the one message that was tried first failed (%(type)s) on %(servers)s") % facts
    if not every:
        return _("failures of several types in a row on %(servers)s") % facts
    text = ngettext("%(n)s failure in a row on %(servers)s", "%(n)s failures in a row on %(servers)s", every)
    return text % {**facts, "n": number(every)}


def cause_of_trip(trip: BreakerTrip, interruptions: Sequence[Interruption] = ()) -> str:
    """Returns the cause with the number of failures that it took, by the latest of the interruptions (newest
    first) with the reason of the trip: a trip that was opened again also has those of the message that was
    tried first."""
    said = next((each for each in interruptions if each.effective and each.reason == trip.reason), None)
    same, every = (said.same_count, said.any_count) if said else (0, 0)
    kind = trip.exception_type or (said.same_type if said else "")
    return cause(trip.reason, kind, same, every, trip_servers(trip, interruptions))


def trip_servers(trip: BreakerTrip, interruptions: Sequence[Interruption] = ()) -> list[str]:
    """Returns who had given the setting up, as the trip keeps it; rows of interruptions serve where it does
    not."""
    kept = trip.quorum.get("interrupted") if isinstance(trip.quorum, dict) else None
    if isinstance(kept, list) and kept:
        return [str(name) for name in kept]
    return sorted({each.server.name for each in interruptions if each.effective})


def quorum_text(trip: BreakerTrip) -> str:
    """`2 of 2 servers that were needed`, from what the trip keeps."""
    quorum = trip.quorum if isinstance(trip.quorum, dict) else {}
    interrupted = quorum.get("interrupted")
    have = len(interrupted) if isinstance(interrupted, list) else 0
    needed = quorum.get("needed")
    if not isinstance(needed, int):
        return "—"
    text = ngettext("%(have)s of %(n)s server that it took", "%(have)s of %(n)s servers that it took", needed)
    return text % {"have": number(have), "n": number(needed)}


@dataclass(frozen=True, slots=True)
class Done:
    """One thing that was done at a trip. `url` leads to what it was done to, where there is a page of it;
    `first`: with it begins what was done at one time."""

    text: str
    name: str
    url: str = ""
    first: bool = False


def effects(user: Any, trip: BreakerTrip) -> list[Done]:
    """Returns them in the order in which they were done, as this person may see them. A word that is not
    known here is shown as it is."""
    return [_done(effect) for effect in effects_for(user, trip)]


def _done(effect: dict[str, Any]) -> Done:
    what, name = str(effect.get("what", "")), str(effect.get("name", ""))
    text, page = _words().get(what, (what, ""))
    return Done(text, name, link(page, name) if page and name else "", what == "setting_disabled")


def _words() -> dict[str, tuple[str, str]]:
    """Returns by the code: what is said, and the page that shows the named thing."""
    return {
        "setting_disabled": (_("setting switched off"), "setting"),
        "member_disabled": (_("member of the group switched off"), "setting"),
        "group_disabled": (_("group switched off"), "group"),
        "run_unwanted": (_("stopped on server"), "server"),
        "run_stopped": (_("stopped on server"), "server"),
        "notice": (_("told"), ""),
        "notice_created": (_("told"), ""),
    }


def interruption_cause(interruption: Interruption) -> str:
    return cause(
        interruption.reason,
        interruption.same_type,
        interruption.same_count,
        interruption.any_count,
        [interruption.server.name],
    )


def effects_for(user: Any, trip: BreakerTrip) -> list[dict[str, Any]]:
    """Returns what was done, told notices among it. What is no list of objects is left out."""
    kept = [each for each in trip.effects if isinstance(each, dict)] if isinstance(trip.effects, list) else []
    if may(user, "edit", trip.setting):
        return kept
    return [each | {"name": masked(str(each.get("name", "")))} if "name" in each else each for each in kept]
