"""The operations account manages the broker over STOMP and browses dead letters over AMQP."""

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from agents.services.broker_owner import ForeignBroker, note_owner
from broker.amqp_adapter import AmqpBrowser
from broker.errors import AccessRefused, BrokerError
from console.broker import management
from contract.properties import UNKNOWN, dead_letter_queue
from ma_site.checks.finding import Finding, bad, good, register

ACCOUNT = "Compare MA_BROKER_USER, MA_BROKER_PASSWORD and the broker's roles with docs/operations.md."


@register("broker", 40)
def check(now: datetime) -> Iterator[Finding]:
    try:
        version = management().attribute("broker", "Version")
    except AccessRefused as error:
        yield bad(f"the account {settings.MA_BROKER_STOMP.user} may not manage: {error}", ACCOUNT)
        return
    except BrokerError as error:
        yield bad(
            f"{settings.MA_BROKER_STOMP.url} does not answer: {error}", "./ma status; ./ma logs artemis"
        )
        return
    yield good(f"Artemis {version} is managed over STOMP")
    yield _owner()
    yield _browse()


def _owner() -> Finding:
    try:
        claimed = note_owner(management(), timezone.now())
    except ForeignBroker as foreign:
        return bad(
            f"the broker is another site's: {foreign}", "./ma down; or ./ma up --adopt-broker to take it back"
        )
    except BrokerError as error:
        return bad(f"nobody can say whose broker it is: {error}", "./ma logs artemis")
    return good("the broker belongs to this site" if claimed else "no site has claimed the broker yet")


def _browse() -> Finding:
    browser = AmqpBrowser(settings.MA_BROKER_AMQP)
    try:
        for _ in browser.browse(settings.MA_DLA_ADDRESS, dead_letter_queue(UNKNOWN), limit=1):
            pass
    except AccessRefused as error:
        return bad(
            f"the account {settings.MA_BROKER_AMQP.user} may not browse dead letters: {error}", ACCOUNT
        )
    except BrokerError as error:
        return bad(
            f"dead letters cannot be browsed over AMQP: {error}", "./ma logs artemis; ./ma manage provision"
        )
    finally:
        browser.close()
    return good("dead letters are browsed over AMQP")
