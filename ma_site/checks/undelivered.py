"""No message is known that the broker could not deliver since it started."""

from collections.abc import Iterator
from datetime import datetime

from dlq.undelivered import by_queue
from ma_site.checks.finding import Finding, bad, good, register


@register("undelivered", 66)
def check(now: datetime) -> Iterator[Finding]:
    found = by_queue()
    if not found:
        yield good("the broker could deliver every message")
    for queue, messages, too_low in found:
        wrong = f"; it counts {too_low} too few there" if too_low else ""
        yield bad(
            f"the broker could not deliver {messages} messages of {queue}{wrong}",
            "Each is one dead letter: edit and replay it, or let a JMS (Core) client take it. The counts are "
            "right"
            " again after a restart of the broker. docs/broker.md says which messages these are.",
        )
