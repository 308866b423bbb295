"""Operations on the command line: for scripts and for the night."""

import json
from typing import Any, ClassVar

from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.operations.operation import Done, Operation, perform
from console.operations.refusals import NotAllowed, Refused


class OperationsCommand(BaseCommand):
    """`list`, and one sub-command for each of `operations`, which are of one kind of object."""

    operations: ClassVar[tuple[type[Operation[Any]], ...]]
    # Of the only object that there is: nobody has to name it.
    only_key: ClassVar[str] = ""

    def as_json(self, obj: Any) -> dict[str, Any]:
        """Returns what `list --json` and a verb print."""
        raise NotImplementedError

    def line(self, row: dict[str, Any]) -> str:
        """Returns what follows the key in `list`."""
        raise NotImplementedError

    def made(self, done: Done) -> dict[str, Any]:
        """Returns what `--json` says of what was made."""
        return {}

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        on = self.operations[0].on
        listed = actions.add_parser("list", help=f"list every {on.name} with its state")
        listed.add_argument("--json", action="store_true")
        for operation in self.operations:
            one = actions.add_parser(operation.verb(), help=str(operation.label))
            named: dict[str, Any] = {"nargs": "?", "default": self.only_key} if self.only_key else {}
            one.add_argument("key", metavar=on.key.upper(), **named)
            one.add_argument(
                "--as", dest="person", metavar="USER", help="act with the permissions of this user"
            )
            one.add_argument("--json", action="store_true")
            for name, each in operation.inputs.items():
                each.add_argument(one, name)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "list":
            self._list(options["json"])
            return
        operation = next(each for each in self.operations if each.verb() == options["action"])
        obj, person = self._found(options["key"]), named_person(options["person"])
        given = {name: each.from_command(options[name]) for name, each in operation.inputs.items()}
        try:
            done = perform(operation, obj, person, **given)
        except NotAllowed as denied:
            raise CommandError(f"{options['person']}: {denied.reason}") from denied
        except Refused as refused:
            raise CommandError(refused.sentence) from refused
        except ObjectDoesNotExist as gone:
            raise CommandError("This object has already been deleted.") from gone
        if options["json"]:
            now = self._found(options["key"])
            answer = {"done": str(done.message), "changed": done.changed}
            self._print({**answer, **self.as_json(now), **self.made(done)})
        else:
            self.stdout.write(str(done.message))

    def _list(self, as_json: bool) -> None:
        on = self.operations[0].on
        rows = {on.key_of(obj): self.as_json(obj) for obj in on.rows().order_by(on.key)}
        if as_json:
            self._print(list(rows.values()))
            return
        width = max(map(len, rows), default=0)
        for key, row in rows.items():
            self.stdout.write(f"{printable(key):<{width}}  {printable(self.line(row))}")

    def _found(self, key: str) -> Any:
        on = self.operations[0].on
        found = on.rows().filter(**{on.key: key}).first()
        if found is None:
            this = type(self).__module__.rpartition(".")[2]
            raise CommandError(f"There is no {on.name} {key!r}; ./ma manage {this} list shows them.")
        return found

    def _print(self, value: Any) -> None:
        self.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def named_person(name: str | None) -> User | None:
    """None is the command line itself: whoever may start it may do everything, as with the database."""
    if name is None:
        return None
    person = User.objects.filter(username=name, is_active=True).first()
    if person is None:
        raise CommandError(f"There is no active user {name!r}.")
    return person


def printable(text: str) -> str:
    """What other programs have written may hold what a terminal obeys."""
    return text if text.isprintable() else repr(text)


def _plain(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)
