"""manage.py settings list|enable|disable|run|stop: what people do on the pages, for scripts and for the
night."""

import json
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agents.models import Activation, LaunchSetting
from agents.models.activation import OPEN_ACTIVATIONS
from agents.reasons import BY_COMMAND, BY_COMMAND_BECAUSE
from agents.services.rights import why_not
from agents.services.settings import disable_setting, enable_setting
from agents.services.starting import run_now, stop_activation
from agents.services.switching import Refused
from console.reasons import Reason, said

# What the history says where no person is named.


class Command(BaseCommand):
    help = "Lists launch settings, or enables, disables, runs or stops one. Exit code 1 where it is refused."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        _common(actions.add_parser("list", help="every setting with its state"))
        for name, text in (
            ("enable", "switch it on"),
            ("disable", "switch it off on every server; its messages wait"),
            ("run", "start what is otherwise started by its schedule"),
            ("stop", "stop the activation that goes on; it stays enabled"),
        ):
            one = actions.add_parser(name, help=text)
            one.add_argument("key")
            one.add_argument("--as", dest="person", metavar="USER", help="with the rights of this person")
            _common(one)
            if name in ("disable", "stop"):
                one.add_argument("--reason", default="", help="for the history")
            if name == "disable":
                one.add_argument("--ticket", default="")
                one.add_argument(
                    "--until", metavar="INSTANT", help="enable it again then: 2026-03-01T06:00:00+00:00"
                )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "list":
            self._list(options["json"])
            return
        setting = _setting(options["key"])
        person = _person(options["person"], options["action"], setting)
        try:
            told, activation = ACTIONS[options["action"]](setting, person, options)
        except Refused as refused:
            raise CommandError(f"{refused.reason} {refused.what_to_do}") from refused
        setting = _setting(options["key"])
        if options["json"]:
            self._print(
                {"done": told, **_as_json(setting), "activation": str(activation.pk) if activation else None}
            )
        else:
            self.stdout.write(f"{setting.key}: {told}")

    def _list(self, as_json: bool) -> None:
        settings = LaunchSetting.objects.select_related("pool", "destination").order_by("key")
        rows = [_as_json(setting) for setting in settings]
        if as_json:
            self._print(rows)
            return
        width = max((len(row["key"]) for row in rows), default=0)
        for row in rows:
            state = "enabled " if row["enabled"] else "disabled"
            why = f"  {row['disabled_reason']}" if row["disabled_reason"] else ""
            kind = f"{row['timing']}-{row['spread']}"
            self.stdout.write(
                f"{row['key']:<{width}}  {state}  {kind:<12}  {row['pool']}  {row['agent']}{why}"
            )

    def _print(self, value: Any) -> None:
        self.stdout.write(json.dumps(value, indent=2, ensure_ascii=False))


def _common(parser: CommandParser) -> None:
    parser.add_argument("--json", action="store_true")


def _setting(key: str) -> LaunchSetting:
    found = LaunchSetting.objects.select_related("pool", "destination").filter(key=key).first()
    if found is None:
        raise CommandError(f"There is no setting {key!r}; ./ma manage settings list shows them.")
    return found


def _person(name: str | None, action: str, setting: LaunchSetting) -> User | None:
    """None is the command line itself: whoever may start it may do everything, as with the database."""
    if name is None:
        return None
    person = User.objects.filter(username=name, is_active=True).first()
    if person is None:
        raise CommandError(f"There is no active user {name!r}.")
    if refused := why_not(person, action, setting):
        raise CommandError(f"{name}: {refused}")
    return person


def _as_json(setting: LaunchSetting) -> dict[str, Any]:
    return {
        "key": setting.key,
        "enabled": setting.enabled,
        "state_since": setting.state_since.isoformat(),
        "disabled_reason": str(setting.disabled_reason),
        "kind": setting.kind,
        "timing": setting.timing,
        "spread": setting.spread,
        "pool": setting.pool.name,
        "agent": setting.agent,
        "destination": setting.destination.name if setting.destination else None,
        "provision_state": setting.provision_state,
    }


# -- actions: what was done, and the activation --------------------------------------------------------------

Done = tuple[str, Activation | None]


def _enable(setting: LaunchSetting, person: User | None, options: dict[str, Any]) -> Done:
    was_on = setting.enabled
    activation = enable_setting(setting, by=person, now=timezone.now())
    return ("was enabled already" if was_on else "enabled"), activation


def _disable(setting: LaunchSetting, person: User | None, options: dict[str, Any]) -> Done:
    until = parse_datetime(options["until"]) if options["until"] else None
    if options["until"] and (until is None or timezone.is_naive(until)):
        raise CommandError("--until needs an instant with its offset: 2026-03-01T06:00:00+00:00")
    reason = _reason(person, options["reason"])
    was_on = disable_setting(
        setting, person, reason, timezone.now(), ticket=options["ticket"][:200], until=until
    )
    return ("disabled" if was_on else "was disabled already"), None


def _run(setting: LaunchSetting, person: User | None, options: dict[str, Any]) -> Done:
    return "started", run_now(setting, person, timezone.now())


def _stop(setting: LaunchSetting, person: User | None, options: dict[str, Any]) -> Done:
    activation = (
        Activation.objects.select_related("setting")
        .filter(setting=setting, state__in=OPEN_ACTIVATIONS)
        .first()
    )
    if activation is None:
        raise CommandError("No activation of it goes on.")
    stopped = stop_activation(activation, person, _reason(person, options["reason"]), timezone.now())
    return ("stopped" if stopped else "was ending already"), activation


def _reason(person: User | None, reason: str) -> Reason:
    if person is not None:
        return said(reason)
    return BY_COMMAND_BECAUSE(why=reason) if reason else BY_COMMAND()


ACTIONS: dict[str, Callable[[LaunchSetting, User | None, dict[str, Any]], Done]] = {
    "enable": _enable,
    "disable": _disable,
    "run": _run,
    "stop": _stop,
}
