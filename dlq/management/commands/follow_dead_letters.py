"""`manage.py follow_dead_letters`: the process `feed`."""

import signal
import threading
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, close_old_connections
from django.utils import timezone

from agents import hooks
from agents.reconciler import stand_in_at_broker
from agents.site.broker_owner import ForeignBroker, OwnerWatch, note_owner, require_own_broker
from broker.amqp.browser import AmqpBrowser
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.publisher import AmqpPublisher
from broker.port import BrokerError
from console.broker import management
from console.hooks import process_begins
from console.leases.holder import FEED as FEED_LEASE
from console.leases.holder import Holder, LeaseOver, kept
from console.leases.rules import ASK_SECONDS
from contract.names import FEED, dead_letter_queue
from dlq.index.feed import Feed, Inbox
from dlq.index.sweep import Sweep
from exposition import notify

log = structlog.get_logger(__name__)

ASK_AGAIN_SECONDS = 2.0


class Command(BaseCommand):
    help = "Adds every new dead letter to the index until it is stopped."
    # They load every page, which takes a second; tests run them.
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        process_begins("feed")
        notify.tell("READY=1")
        self._wait_for_own_broker(stopping)
        lease = Holder(FEED_LEASE)
        with kept(lease):
            while self._has(lease, stopping):
                try:
                    self._follow(stopping, lease)
                except ForeignBroker as foreign:
                    log.error("feed stopped until the broker belongs to this site again", reason=str(foreign))
                    self._wait_until_given_back(stopping)
        log.info("feed stopped")

    def _has(self, lease: Holder, stopping: threading.Event) -> bool:
        """Waits while another host follows the dead letters; false: it is told to stop."""
        while not lease.may_act() and not stopping.wait(ASK_SECONDS / 2):
            notify.fed()
        return not stopping.is_set()

    def _follow(self, stopping: threading.Event, lease: Holder) -> None:
        """Until it is told to stop, or the lease is not its own any more. What it stores or does within a
        step after that, another feed does too, and comes to the same. Raises ForeignBroker: another site has
        taken the broker over."""
        inbox = Inbox()
        account, dla = settings.MA_BROKER_AMQP, settings.MA_DLA_ADDRESS
        consumer = AmqpConsumer(account, dla, dead_letter_queue(FEED), inbox, core=True)
        owner = OwnerWatch(management())

        def require_own(now: datetime, *, at_once: bool) -> None:
            owner.require(now, at_once=at_once)
            lease.require()

        feed = Feed(consumer, inbox, management(), AmqpPublisher(account), dla, require_own=require_own)
        log.info("feed starts", queue=dead_letter_queue(FEED))
        sweep = Sweep(management(), AmqpBrowser(account), dla)
        feed.start()
        more = False
        try:
            while not stopping.is_set():
                notify.fed()
                lease.require()
                close_old_connections()
                stored = feed.step(timeout=0.0 if more else 1.0)
                lease.require()
                more = sweep.step(timezone.now(), idle=not stored)
                self._stand_in()
                if inbox.is_open:
                    lease.worked()
        except LeaseOver:
            log.warning("feed stands by: its lease is over")
        finally:
            sweep.stop()
            feed.stop()

    def _stand_in(self) -> None:
        stand_in_at_broker(timezone.now())
        hooks.stand_in(timezone.now())

    def _wait_until_given_back(self, stopping: threading.Event) -> None:
        """Nothing is taken from the broker meanwhile, and nothing done there; people are told."""
        while not stopping.wait(ASK_AGAIN_SECONDS):
            notify.fed()
            close_old_connections()
            try:
                note_owner(management(), timezone.now())
                return
            except (ForeignBroker, BrokerError, OperationalError, InterfaceError):
                hooks.stand_in(timezone.now())

    def _wait_for_own_broker(self, stopping: threading.Event) -> None:
        """Before the first dead letter is taken: one that another site's feed should have would be lost to
        it."""
        while not stopping.is_set():
            notify.fed()
            close_old_connections()
            try:
                require_own_broker(management())
                return
            except ForeignBroker as foreign:
                raise CommandError(str(foreign)) from foreign
            except (BrokerError, OperationalError, InterfaceError) as error:
                log.warning("feed waits: the owner of the broker is unknown", reason=str(error))
                hooks.stand_in(timezone.now())
                stopping.wait(ASK_AGAIN_SECONDS)
