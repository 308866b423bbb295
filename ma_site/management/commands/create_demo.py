"""manage.py create_demo: a pool, destinations, enabled settings, a scheduled group, roles and an
administrator."""

import secrets
from pathlib import Path
from typing import Any

from django.contrib.auth.hashers import check_password
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents.groups.group import enable_group
from agents.groups.operations import EnableGroup
from agents.models import LaunchSetting, ProvisionState, ScheduledGroup
from agents.provisioning.provision import provision_all
from agents.servers.admission import write_draft
from agents.settings.enable import enable_setting
from agents.settings.operations import EnableSetting
from console.audit.saves import saving
from console.operations.operation import Act
from console.operations.refusals import Refused
from insights.archive.readiness import is_default
from ma_site.demo import MEMBERS, make_demo_group, make_demo_rows, make_groups, make_history

ADMIN = "admin"


class Command(BaseCommand):
    help = (
        "Creates the demo; repeating it changes nothing. Prints the administrator's password the first time; "
        "with --password-file every time until the password is changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--servers", default="srv-1,srv-2", help="servers of the pool, comma-separated")
        parser.add_argument(
            "--password-file", default="", help="file for the initial password, readable only by its owner"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        servers = [name.strip() for name in options["servers"].split(",") if name.strip()]
        if not servers:
            raise CommandError("--servers is empty.")
        make_groups()
        before = set(LaunchSetting.objects.values_list("key", flat=True))
        settings = make_demo_rows(servers, timezone.now())
        if not before and is_default():
            # Only with the first demo of a site: one that was removed does not come back.
            make_history(settings[0].pool, timezone.now())
        provision_all()
        for setting in settings:
            # One that a person switched off stays off.
            if setting.key not in before and setting.key not in MEMBERS:
                self._enable(LaunchSetting.objects.get(pk=setting.pk))
        if not before & set(MEMBERS):
            self._enable_group(make_demo_group(timezone.now()))
        self._administrator(Path(options["password_file"]) if options["password_file"] else None)

    def _enable(self, setting: LaunchSetting) -> None:
        if setting.provision_state != ProvisionState.READY:
            raise CommandError(f"{setting.key} is not ready on the broker: {setting.provision_problem}")
        try:
            act = Act(EnableSetting(), setting, None, timezone.now(), {})
            enable_setting(setting, by=None, now=act.now, record=act.record)
        except Refused as refused:
            self._stays_off(setting.key, refused)

    def _enable_group(self, group: ScheduledGroup) -> None:
        try:
            act = Act(EnableGroup(), group, None, timezone.now(), {})
            enable_group(group, by=None, now=act.now, record=act.record)
        except Refused as refused:
            self._stays_off(str(group), refused)

    def _stays_off(self, what: str, why: Refused) -> None:
        """Keeps what people forbid, as the agents of a pool, from stopping the start of the site."""
        self.stderr.write(f"{what} stays disabled: {why}")

    def _administrator(self, file: Path | None) -> None:
        """Never resets a password. The file is written first: killed before the account is made, the next one
        takes the password from there; killed after it, the two agree."""
        if not User.objects.filter(is_superuser=True).exists():
            password = _kept(file) or secrets.token_urlsafe(12)
            if file is not None:
                _keep(file, password)
            with saving(None, None) as save:
                save.row = User.objects.create_superuser(ADMIN, password=password)
            self.stdout.write(
                f"administrator: {ADMIN}  password: {password}" + ("" if file else "  (shown only once)")
            )
            return
        if file is None:
            return
        password = _kept(file)
        if password and is_first_password(password):
            self.stdout.write(f"administrator: {ADMIN}  password: {password}")
        else:
            # A password that nobody has any more is of use to nobody but a thief who tries it elsewhere.
            file.unlink(missing_ok=True)


def is_first_password(password: str) -> bool:
    """Returns whether the administrator of the demo still has it."""
    admin = User.objects.filter(username=ADMIN, is_superuser=True, is_active=True).first()
    return admin is not None and check_password(password, admin.password)


def _kept(file: Path | None) -> str:
    try:
        return file.read_text("utf-8").strip() if file else ""
    except OSError:
        return ""


def _keep(file: Path, password: str) -> None:
    """Half a password would be taken for a whole one by the next call."""
    try:
        write_draft(file, password).replace(file)
    except OSError as error:
        raise CommandError(f"The file of the initial password cannot be written: {error}") from error
