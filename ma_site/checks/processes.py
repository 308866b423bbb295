"""Beat, worker and feed give signs of life."""

from collections.abc import Iterator
from datetime import datetime

from console.processes import seconds_since
from ma_site.checks.finding import Finding, bad, good, register
from ma_site.health import LATE_SECONDS

PROCESSES = {"beat": "beat and worker", "feed": "feed"}


@register("processes", 70)
def check(now: datetime) -> Iterator[Finding]:
    for name, shown in PROCESSES.items():
        seconds = seconds_since(name, now)
        if seconds is None:
            yield bad(f"{shown}: never seen", f"./ma status; ./ma logs {name}")
        elif seconds > LATE_SECONDS[name]:
            yield bad(f"{shown}: silent for {seconds:.0f} s", f"./ma status; ./ma logs {name}")
        else:
            yield good(f"{shown}: seen {seconds:.0f} s ago")
