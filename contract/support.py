"""Which versions of KMAs a site works with: docs/reference/support.md is the policy, this the rule."""

import re
from enum import Enum

from contract import __version__

# Of the same major version: so many minor versions a KMA may be behind its site.
BEHIND = 1
NUMBER = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})", re.ASCII)


class Support(Enum):
    """`UNKNOWN`: what is no version number is neither praised nor blamed."""

    SUPPORTED = "supported"
    TOO_OLD = "too_old"
    TOO_NEW = "too_new"
    UNKNOWN = "unknown"


def support_of(kma: str, site: str = __version__) -> Support:
    """Patches never matter. The wire decides what can be exchanged; this, what was tested together."""
    of_kma, of_site = NUMBER.fullmatch(kma), NUMBER.fullmatch(site)
    if of_kma is None or of_site is None:
        return Support.UNKNOWN
    (major, minor), (site_major, site_minor) = (
        tuple(map(int, each.groups()[:2])) for each in (of_kma, of_site)
    )
    if (major, minor) > (site_major, site_minor):
        return Support.TOO_NEW
    if major < site_major or minor < site_minor - BEHIND:
        return Support.TOO_OLD
    return Support.SUPPORTED
