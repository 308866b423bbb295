"""Redis answers. Without it commands wait for the next poll and the worker has nothing to do."""

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from agents.models import ComponentCondition
from agents.site import certificates
from agents.site.broker_owner import ForeignBroker, note_owner
from agents.site.components import note_state, ping
from broker.amqp.browser import AmqpBrowser
from broker.port import AccessRefused, BrokerError
from console.broker import management
from console.database.storage import database_file, database_version, durability_problems
from contract.names import UNKNOWN, dead_letter_queue
from ma_site.checks.finding import Finding, bad, good, register_check
from ma_site.checks.host import problem_at


@register_check("redis", 30)
def check_redis(now: datetime) -> Iterator[Finding]:
    try:
        ping(settings.MA_REDIS_URL)
    except OSError as error:
        yield bad(f"does not answer: {error}", "./ma status; ./ma logs redis")
    else:
        yield good("answers")


# -- the operations account manages the broker over STOMP and browses dead letters over AMQP -----------------


ACCOUNT = (
    "Check MA_BROKER_USER, MA_BROKER_PASSWORD and the broker's roles: docs/reference/broker-accounts.md."
)


@register_check("broker", 40)
def check_broker(now: datetime) -> Iterator[Finding]:
    try:
        version = management().attribute("broker", "Version")
    except AccessRefused as error:
        yield bad(f"the account {settings.MA_BROKER_STOMP.user} cannot manage the broker: {error}", ACCOUNT)
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
            f"the broker belongs to another site: {foreign}",
            "./ma down; or ./ma up --adopt-broker to take it back",
        )
    except BrokerError as error:
        return bad(f"the owner of the broker is unknown: {error}", "./ma logs artemis")
    return good("the broker belongs to this site" if claimed else "no site has claimed the broker yet")


def _browse() -> Finding:
    browser = AmqpBrowser(settings.MA_BROKER_AMQP)
    try:
        for _ in browser.browse(settings.MA_DLA_ADDRESS, dead_letter_queue(UNKNOWN), limit=1):
            pass
    except AccessRefused as error:
        return bad(f"the account {settings.MA_BROKER_AMQP.user} cannot browse dead letters: {error}", ACCOUNT)
    except BrokerError as error:
        return bad(
            f"dead letters cannot be browsed over AMQP: {error}", "./ma logs artemis; ./ma manage provision"
        )
    finally:
        browser.close()
    return good("dead letters are browsed over AMQP")


# -- certificates last ---------------------------------------------------------------------------------------


@register_check("certificates", 45)
def check_certificates(now: datetime) -> Iterator[Finding]:
    for what, end in certificates.seen_now():
        if end < now + certificates.SOON:
            when = "expired" if end <= now else "expires"
            yield bad(
                f"{what}: the certificate {when} on {end:%Y-%m-%d}",
                "Renew it: docs/how-to/tls.md#when-a-certificate-expires.",
            )
        else:
            yield good(f"{what}: the certificate is valid until {end:%Y-%m-%d}")


# -- every migration is applied ------------------------------------------------------------------------------


@register_check("migrations", 20)
def check_migrations(now: datetime) -> Iterator[Finding]:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in missing[:5])
        yield bad(f"{len(missing)} are not applied: {names}", "./ma manage migrate")
    else:
        yield good("all applied")


# -- the database answers, takes writes, and keeps what it has confirmed -------------------------------------


@register_check("database", 10)
def check_database(now: datetime) -> Iterator[Finding]:
    try:
        found, problems = database_version(), list(durability_problems())
        note_state("database", ComponentCondition.OK, now)
    except DatabaseError as error:
        yield bad(f"{connection.display_name} is unavailable: {error}", _advice(str(error)))
        return
    yield good(f"{found} reads and writes")
    for problem, advice in problems:
        yield bad(problem, advice)


def _advice(error: str) -> str:
    """SQLite has many words for a full disk; the disk itself has one."""
    file = database_file()
    if file and file.parent.exists() and problem_at(file.parent):
        return "Free disk space: see “disk” above. The schema is not the cause."
    if "No space left" in error:
        return "Free disk space on the PostgreSQL host; do not touch its data folder or pg_wal."
    return "Check MA_DATABASE_URL; then ./ma manage migrate."
