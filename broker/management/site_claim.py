"""Which site a broker belongs to: written on the broker itself, so that it survives a restart and a kill.

The mark is one durable queue of a fixed name. Its filter carries the id of the site; no message ever reaches
it. `createQueue` of a name that exists fails, so of two sites that claim at once exactly one wins. The filter
that a queue was made with is in the broker's journal before the call returns.

A process that dies before `createQueue` has claimed nothing. One that dies after it owns the broker, and
finds its own id the next time. Between the two calls of `replace_owner` the broker belongs to nobody: whoever
starts next decides anew by its own rules, and the command that was killed is repeated.
"""

import json
import re
from collections.abc import Mapping
from uuid import UUID

from broker.management.desired_topology import MULTICAST, Address
from broker.management.queues import every, find
from broker.management.topology import apply
from broker.port import Management, ManagementFailed
from contract.names import BIN, FEED, UNKNOWN, dead_letter_queue

MARK = "MA.site"
_FILTER = re.compile(r"ma_site = '([0-9a-f-]{36})'")


def owner(management: Management) -> UUID | None:
    """None where no site has claimed the broker. Raises BrokerError, also for a mark that nobody can read."""
    row = find(management, "listQueues", MARK)
    if row is None:
        return None
    found = _id_in(row)
    if found is None:
        raise ManagementFailed(f"the filter of the queue {MARK} is not a site id: {row['filter']!r}")
    return found


def owner_or_unreadable(management: Management) -> str:
    """For the audit: the id, or what stands in its place; empty where there is no mark. Raises
    BrokerError."""
    row = find(management, "listQueues", MARK)
    return "" if row is None else str(_id_in(row) or row["filter"])


def claim(management: Management, site: UUID) -> UUID:
    """The owner after this call: `site`, or who was faster. Raises BrokerError."""
    apply(management, [Address(MARK)])
    wanted = {
        "name": MARK,
        "address": MARK,
        "routing-type": MULTICAST,
        "durable": True,
        "filter-string": f"ma_site = '{site}'",
        "auto-create-address": False,
    }
    refusal = ""
    try:
        management.call("broker", "createQueue", json.dumps(wanted), False)
    except ManagementFailed as error:  # somebody was faster, or it cannot be made
        refusal = str(error)
    found = owner(management)
    if found is None:
        raise ManagementFailed(refusal or f"the queue {MARK} was created but does not exist")
    return found


def replace_owner(management: Management, site: UUID) -> UUID | None:
    """Who owned it before. For a person who takes a broker over on purpose. Raises BrokerError."""
    row = find(management, "listQueues", MARK)
    before = None if row is None else _id_in(row)
    if before == site:
        return before
    if row is not None:
        management.call("broker", "destroyQueue", MARK)
    found = claim(management, site)
    if found != site:
        raise ManagementFailed(f"the site {found} claimed the broker at the same time")
    return before


def setting_keys(management: Management) -> set[str]:
    """Keys of the settings, of whatever site, whose dead-letter queues the broker has."""
    prefix = dead_letter_queue("")
    own = {dead_letter_queue(name) for name in (FEED, UNKNOWN, BIN)}
    names = {row["name"] for row in every(management, "listQueues")}
    return {name.removeprefix(prefix) for name in names - own if name.startswith(prefix)}


def _id_in(row: Mapping[str, str]) -> UUID | None:
    found = _FILTER.fullmatch(row["filter"])
    return UUID(found[1]) if found else None
