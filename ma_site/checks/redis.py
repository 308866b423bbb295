"""Redis answers. Without it commands wait for the next poll and the worker has nothing to do."""

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings

from ma_site.checks.finding import Finding, bad, good, register
from ma_site.redis_check import ping


@register("redis", 30)
def check(now: datetime) -> Iterator[Finding]:
    try:
        ping(settings.MA_REDIS_URL)
    except OSError as error:
        yield bad(f"does not answer: {error}", "./ma status; ./ma logs redis")
    else:
        yield good("answers")
