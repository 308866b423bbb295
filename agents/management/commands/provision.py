"""manage.py provision: makes on the broker what the settings want, and reads back that it is there."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.models import LaunchSetting, ProvisionState
from agents.provisioning.provision import provision_all
from broker.port import BrokerError


class Command(BaseCommand):
    help = "Creates addresses, queues and policies on the broker for every setting. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--keep-going",
            action="store_true",
            help="list settings that are not ready, without an error exit code",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            provision_all()
        except BrokerError as error:
            raise CommandError(f"The broker refused: {error}") from error
        failed = 0
        for setting in LaunchSetting.objects.all():
            self.stdout.write(
                f"{setting.key}: {setting.provision_state} {setting.provision_problem}".rstrip()
            )
            failed += setting.provision_state != ProvisionState.READY
        if failed and not options["keep_going"]:
            raise CommandError(f"{failed} settings are not ready on the broker.")
