"""`manage.py adopt_dead_letters QUEUE`: says what goes where, and with --go moves it."""

import json
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from broker.amqp.browser import AmqpBrowser
from broker.port import BrokerError
from console.audit.log import account_of, record_refused
from console.broker import management
from console.operations.refusals import Refused
from contract.names import dead_letter_queue
from dlq.cli.rest import person_named
from dlq.cli.terminal import safe
from dlq.index.walk import WalkIncomplete
from dlq.queues.adoption import ADOPT, AdoptionPlan, OriginShare, adopt, plan_adoption
from dlq.queues.operations import MANAGE

NAME_SHOWN = 120
# Dead letters between two words about how far it is.
WORD_EVERY = 50_000


class Command(BaseCommand):
    help = (
        "Moves the messages of another dead-letter queue, or of DLQ.unknown, to the dead-letter queues of "
        "the settings whose queues they come from. Without --go it only shows what would be moved. Safe to "
        "interrupt and repeat."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("queue", metavar="QUEUE")
        parser.add_argument("--go", action="store_true", help="move them")
        parser.add_argument(
            "--person", help="user name for the audit log; needs the permission to manage other queues"
        )
        parser.add_argument("--reason", default="")
        parser.add_argument("--json", action="store_true", help="one JSON object on standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        queue, person = options["queue"], self._person(options["person"], options["queue"])
        try:
            asked, browser = management(), AmqpBrowser(settings.MA_BROKER_AMQP)
            plan = plan_adoption(queue, asked, browser, self._progress())
            moved = self._adopted(plan, asked, person, options) if options["go"] else None
        except Refused as refused:
            if options["go"]:
                record_refused(ADOPT, by=person, target=f"queue:{queue}", why=refused.reason)
            raise CommandError(refused.sentence) from refused
        except WalkIncomplete as error:
            raise CommandError(f"{error}. Nothing was moved: try again.") from error
        except BrokerError as error:
            more = " Messages moved so far stay moved: repeat the command." if options["go"] else ""
            raise CommandError(f"Broker error: {safe(str(error), 300)}.{more}") from error
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(plan, moved), ensure_ascii=False))
        else:
            self._print(plan, moved)

    def _person(self, name: str | None, queue: str) -> User | None:
        """Who has this terminal may move messages anyway; the audit then names the account of the system."""
        if name is None:
            return None
        person = person_named(name)
        if not person.has_perm(MANAGE):
            record_refused(ADOPT, by=person, target=f"queue:{queue}", why="permission denied")
            raise CommandError(f"{name} may not move these messages: the permission {MANAGE} is missing.")
        return person

    def _progress(self) -> Any:
        said = 0

        def told(seen: int) -> None:
            nonlocal said
            if seen >= said + WORD_EVERY:
                said = seen
                self.stderr.write(f"{seen:,} messages read")

        return told

    def _adopted(
        self, plan: AdoptionPlan, asked: Any, person: User | None, options: dict[str, Any]
    ) -> dict[str, int]:
        moved: dict[str, int] = {}
        said = 0
        for share, count in adopt(
            plan, asked, by=person, now=timezone.now(), detail=account_of(person), reason=options["reason"]
        ):
            moved[share.key] = count
            if (total := sum(moved.values())) >= said + WORD_EVERY:
                said = total
                self.stderr.write(f"{total:,} messages moved")
        return moved

    def _print(self, plan: AdoptionPlan, moved: dict[str, int] | None) -> None:
        for share in plan.going:
            done = "would move" if moved is None else f"{moved.get(share.key, 0):,} moved"
            self.stdout.write(f"{share.letters:>12,}  {done} to {dead_letter_queue(share.key)}")
        for share in plan.staying:
            self.stdout.write(f"{share.letters:>12,}  remain: {_name(share)}, {share.why}")
        if not plan.shares:
            self.stdout.write("The queue is empty.")
        elif moved is None and plan.going:
            self.stdout.write("Nothing was moved: add --go to move the messages.")
        elif moved is not None:
            self.stdout.write(
                f"{sum(moved.values()):,} messages moved. The index is up to date within a minute if the "
                "process feed runs (./ma status)."
            )


def _name(share: OriginShare) -> str:
    return f"from {safe(share.origin, NAME_SHOWN)}" if share.origin else "of unknown origin"


def _as_json(plan: AdoptionPlan, moved: dict[str, int] | None) -> dict[str, Any]:
    return {
        "queue": plan.source,
        "letters": sum(share.letters for share in plan.shares),
        "go": moved is not None,
        "going": [
            {"from": share.origin, "to": dead_letter_queue(share.key), "letters": share.letters}
            | ({} if moved is None else {"moved": moved.get(share.key, 0)})
            for share in plan.going
        ],
        "staying": [
            {"from": share.origin, "letters": share.letters, "why": str(share.why)} for share in plan.staying
        ],
    }
