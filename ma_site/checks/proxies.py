"""Whose X-Forwarded-For is believed: of the proxies before the site, and of nobody else."""

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings

from agents.services.proxies import unknown_proxy_seen
from ma_site.checks.finding import Finding, bad, good, register


@register("proxies", 110)
def check(now: datetime) -> Iterator[Finding]:
    if any(network.prefixlen == 0 for network in settings.MA_TRUSTED_PROXIES):
        yield bad(
            "MA_TRUSTED_PROXIES names every address: anybody chooses the one that the audit keeps and the "
            "delays count",
            "Name the addresses of your proxies alone in MA_TRUSTED_PROXIES, then ./ma down, ./ma up.",
        )
    elif address := unknown_proxy_seen(now):
        yield bad(
            f"people sign in from {address} with X-Forwarded-For, which nobody believes: all of them share "
            f"its address",
            f"If {address} is your proxy, name it in MA_TRUSTED_PROXIES, then ./ma down, ./ma up "
            f"(docs/operations.md).",
        )
    else:
        yield good("no proxy is seen that MA_TRUSTED_PROXIES does not name")
