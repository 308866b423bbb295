"""manage.py claim_broker: whose broker it is, before anything of this site is made on it."""

from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents.site.broker_owner import ForeignBroker, require_own_broker, site_id
from broker.management import site_claim
from broker.port import BrokerError
from console.audit.log import account_of, record
from console.audit.models import AuditResult
from console.broker import management

log = structlog.get_logger(__name__)

# Told apart from every other failure by `./ma up`.
FOREIGN = 3


class Command(BaseCommand):
    help = (
        "Claims the broker for this site. Exit code 3 if it belongs to another site; --adopt takes it over."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--adopt",
            action="store_true",
            help="take the broker over from another site, which stops using it",
        )
        parser.add_argument("--reason", default="", help="reason for the audit log")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["adopt"]:
                self._adopt(options["reason"])
            require_own_broker(management())
        except ForeignBroker as foreign:
            raise CommandError(str(foreign), returncode=FOREIGN) from foreign
        except BrokerError as error:
            raise CommandError(f"The broker refused: {error}") from error
        self.stdout.write(f"The broker belongs to this site, {site_id()}.")

    def _adopt(self, reason: str) -> None:
        """The audit comes first: a process that dies after it has taken nothing over, or what the audit
        says."""
        site, before = site_id(), site_claim.owner_or_unreadable(management())
        if before == str(site):
            return
        target = f"broker:{settings.MA_BROKER_STOMP.url}"
        detail = {"site": str(site), "before": before, **account_of(None)}
        record("adopt_broker", by=None, now=timezone.now(), target=target, reason=reason, detail=detail)
        try:
            site_claim.replace_owner(management(), site)
        except BrokerError as error:
            why = detail | {"why": str(error)}
            failed = AuditResult.FAILED
            record("adopt_broker", by=None, now=timezone.now(), target=target, result=failed, detail=why)
            raise
        log.warning("broker adopted", **detail)
