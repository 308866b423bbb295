"""manage.py bulk enable|disable|stop|label: many settings at once, selected as on their list; for scripts and
at night."""

import json
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from agents.settings.bulk import VERBS, BulkItem, Fate, carry_out, foresee
from console.operations.command import named_person, printable
from console.operations.refusals import Refused
from ma_site.pages.table import STATES, Selection, setting_rows


class Command(BaseCommand):
    help = (
        "Enables, disables, stops or labels every selected setting, and shows what happened to each. Exit "
        "code 1 if one was refused."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for verb, operation in VERBS.items():
            one = actions.add_parser(verb, help=str(operation.label))
            one.add_argument("--state", choices=STATES, default="", help="as on the list of settings")
            one.add_argument("--label", default="", help="key or key=value; several by commas: all of them")
            one.add_argument("--pool", default="")
            one.add_argument("--destination", default="")
            one.add_argument("--q", default="", metavar="TEXT", help="part of its key, agent or pool")
            one.add_argument("--all", action="store_true", help="select every setting")
            one.add_argument("--dry-run", action="store_true", help="only show what would happen")
            one.add_argument(
                "--as", dest="person", metavar="USER", help="act with the permissions of this user"
            )
            one.add_argument("--json", action="store_true")
            for name, each in operation.inputs.items():
                each.add_argument(one, name)

    def handle(self, *args: Any, **options: Any) -> None:
        verb, now, by = options["action"], timezone.now(), named_person(options["person"])
        selection = Selection.of(options)
        if selection == Selection() and not options["all"]:
            raise CommandError(
                "Select settings by --state, --label, --pool, --destination or --q, or use --all."
            )
        inputs = {name: each.from_command(options[name]) for name, each in VERBS[verb].inputs.items()}
        rows = selection.among(setting_rows(now, by or AnonymousUser()))
        settings = sorted((row.setting for row in rows), key=lambda setting: setting.key)
        try:
            items = foresee(verb, settings, by, now, inputs)
        except Refused as refused:
            raise CommandError(refused.sentence) from refused
        whole = None
        if not options["dry_run"]:
            goes = [item.key for item in items if item.fate == Fate.DONE]
            whole, done = carry_out(verb, goes, by, inputs)
            by_key = {item.key: item for item in done}
            items = [by_key.get(item.key, item) for item in items]
        self._print(items, whole, as_json=options["json"])
        if any(item.fate in (Fate.REFUSED, Fate.FAILED) for item in items):
            raise SystemExit(1)

    def _print(self, items: list[BulkItem], whole: Any, *, as_json: bool) -> None:
        if as_json:
            settings = [{"key": each.key, "result": str(each.fate), "says": each.says} for each in items]
            answer = {"operation": str(whole) if whole else None, "settings": settings}
            self.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False))
            return
        width = max((len(item.key) for item in items), default=0)
        for item in items:
            self.stdout.write(f"{item.key:<{width}}  {item.fate!s:<9}  {printable(item.says)}".rstrip())
