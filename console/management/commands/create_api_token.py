"""manage.py create_api_token USER: a personal token, printed once."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from console.audit.log import account_of, record
from console.models import ApiToken


class Command(BaseCommand):
    help = (
        "Creates an API token for a user and prints it once. It has the user's permissions; revoke it in the "
        "admin."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--name", default="", help="purpose of the token")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']!r}.")
        if not user.is_active:
            raise CommandError(f"The user {options['user']!r} is not active.")
        name, now, target = options["name"][:100], timezone.now(), f"user:{user.get_username()}"
        with transaction.atomic():
            secret = ApiToken.issue(user, name, now=now)
            record("token.issue", by=None, now=now, target=target, detail={"name": name, **account_of(None)})
        self.stdout.write(secret)
