"""Nothing lies where the broker puts what it could not turn into AMQP."""

from collections.abc import Iterator
from datetime import datetime

from broker.errors import BrokerError
from broker.wanted import UNREADABLE
from console.broker import management
from ma_site.checks.finding import Finding, bad, good, register


@register("unreadable", 65)
def check(now: datetime) -> Iterator[Finding]:
    try:
        count = int(management().attribute(f"queue.{UNREADABLE}", "MessageCount"))
    except BrokerError as error:
        yield bad(
            f"the broker does not tell what {UNREADABLE} holds: {error}",
            "./ma logs artemis; ./ma manage provision",
        )
        return
    if count:
        yield bad(
            f"{UNREADABLE} holds {count} messages that the broker could not turn into AMQP: no agent got "
            f"them",
            "Look at them with a JMS (Core) client; then tell their producer. docs/broker.md says which "
            "these are.",
        )
    else:
        yield good(f"{UNREADABLE} is empty")
