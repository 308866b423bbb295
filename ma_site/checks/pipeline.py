"""The data pipeline: off by choice, ready, or not; and how its last run went."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from failures.insights.readiness import is_default
from failures.insights.reading import OLD, standing
from ma_site.checks.finding import Finding, bad, good, register

HOUR = timedelta(hours=1)


@register("pipeline", 95)
def check(now: datetime) -> Iterator[Finding]:
    found = standing(now)
    if found.off:
        yield good(found.says)
        return
    if found.says and is_default() and found.loaded is None:
        yield good(
            f"{found.says} It is installed after the first start (./ma logs pyspark); nothing waits for it."
        )
        return
    if found.says:
        yield bad(found.says, "Install it (./ma up does), or leave MA_ARCHIVE_URL empty.")
    if found.damage:
        yield bad(
            f"{found.damage.says}; {found.damage.problem[:200]}",
            "./ma manage archive status; docs/archive.md",
        )
    if found.failed and found.last is not None:
        says = f"the last run is {found.last.state}: {str(found.last.problem)[:200]}"
        yield bad(says, "./ma manage pipeline status --log")
    elif found.old:
        yield bad(
            f"no run has ended well for more than {OLD // HOUR} h",
            "./ma status; ./ma logs worker; ./ma manage pipeline run",
        )
    elif found.loaded is not None:
        yield good(f"last run ended {found.loaded.ended_at:%Y-%m-%d %H:%M}")
    elif not found.says:
        yield good("has not run yet")
