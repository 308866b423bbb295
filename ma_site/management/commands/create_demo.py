"""manage.py create_demo: a pool, destinations, enabled settings, a scheduled group, roles and an administrator."""

import secrets
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents.models import LaunchSetting, ProvisionState, ScheduledGroup
from agents.services.demo import MEMBERS, make_demo_group, make_demo_rows
from agents.services.groups import enable_group
from agents.services.provisioning import provision_all
from agents.services.roles import make_groups
from agents.services.settings import Refused, enable_setting

ADMIN = "admin"


class Command(BaseCommand):
    help = "Makes the demo; a second time nothing changes. Prints the administrator's password the first time."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--servers", default="srv-1,srv-2", help="names of the pool's servers, with commas")

    def handle(self, *args: Any, **options: Any) -> None:
        servers = [name.strip() for name in options["servers"].split(",") if name.strip()]
        if not servers:
            raise CommandError("--servers names no server.")
        make_groups()
        before = set(LaunchSetting.objects.values_list("key", flat=True))
        settings = make_demo_rows(servers, timezone.now())
        provision_all()
        for setting in settings:
            # One that a person switched off stays off.
            if setting.key not in before and setting.key not in MEMBERS:
                self._enable(LaunchSetting.objects.get(pk=setting.pk))
        if not before & set(MEMBERS):
            self._enable_group(make_demo_group(timezone.now()))
        self._administrator()

    def _enable(self, setting: LaunchSetting) -> None:
        if setting.provision_state != ProvisionState.READY:
            raise CommandError(f"{setting.key} is not ready on the broker: {setting.provision_problem}")
        try:
            enable_setting(setting, by=None, now=timezone.now())
        except Refused as refused:
            raise CommandError(f"{setting.key} cannot be enabled: {refused}") from refused

    def _enable_group(self, group: ScheduledGroup) -> None:
        try:
            enable_group(group, by=None, now=timezone.now())
        except Refused as refused:
            raise CommandError(f"{group} cannot be enabled: {refused}") from refused

    def _administrator(self) -> None:
        """Never resets a password: it is printed when the account is made, and then no more."""
        if User.objects.filter(is_superuser=True).exists():
            return
        password = secrets.token_urlsafe(12)
        User.objects.create_superuser(ADMIN, password=password)
        self.stdout.write(f"administrator: {ADMIN}  password: {password}  (shown only now)")
