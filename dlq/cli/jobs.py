"""manage.py dlq
preflight|replay|redirect|discard|put-back|jobs|job|follow|pause|resume|release|cancel|approve|refuse."""

import json
import sys
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.models import LaunchSetting
from console.audit.log import attempt, record_refused
from console.audit.refusals import HIDDEN
from console.operations.operation import perform
from console.ui.amounts import is_typed
from dlq.cli import terminal
from dlq.cli.progress import check_ended, follow, full_id
from dlq.cli.rest import (
    Refused,
    about_setting,
    add_person_arguments,
    as_refused,
    call_api,
    person_named,
    print_json,
)
from dlq.models import Action, InOrder, JobState, ReplayJob
from dlq.replay.operations import ON_REPLAYS, REPLAY_JOBS
from dlq.replay.preflight.rules import CODES, TYPED_ABOVE
from dlq.replay.requests import HOLD_MINUTES

ALL_WARNINGS = "all"
ID_HELP = "id of the job, or the beginning of the id"
ACTIONS = {
    "replay": (Action.GIVE_BACK, "replay messages to their setting"),
    "redirect": (Action.REDIRECT, "redirect messages to another setting, also of another destination"),
    "discard": (Action.DISCARD, "move messages to the trash"),
    "put-back": (Action.PUT_BACK, "restore messages from the trash"),
}


def add_job_commands(actions: Any) -> None:
    preflight = actions.add_parser("preflight", help="show what an action would do; changes nothing")
    preflight.add_argument(
        "--action", choices=[str(action) for action, _help in ACTIONS.values()], default="give_back"
    )
    _scope_arguments(preflight)
    preflight.add_argument("--target", metavar="KEY", help="for a redirect: the receiving setting")
    _order_arguments(preflight)
    preflight.set_defaults(run=_preflight)
    for name, (action, text) in ACTIONS.items():
        parser = actions.add_parser(name, help=text)
        _begin_arguments(parser, action)
        parser.set_defaults(run=_begin, wanted=str(action))
    _job_arguments(actions)


def _scope_arguments(parser: CommandParser) -> None:
    parser.add_argument("--setting", required=True, metavar="KEY")
    parser.add_argument("letters", nargs="*", metavar="ID")
    parser.add_argument("--all", action="store_true", help="all dead letters of the setting")
    parser.add_argument(
        "--query",
        "--filter",
        metavar="FILTER",
        help="dead letters that match a filter, as in lists: exception=KeyError&span=1d",
    )
    parser.add_argument(
        "--group", action="store_true", help="mark the filter as a group (./ma manage dlq groups)"
    )
    parser.add_argument(
        "--up-to",
        type=int,
        metavar="ID",
        help="for --all and --query: leave out messages dead-lettered after this one (preflight shows it)",
    )
    add_person_arguments(parser)


def _begin_arguments(parser: CommandParser, action: str) -> None:
    _scope_arguments(parser)
    parser.add_argument("--reason", required=True, metavar="TEXT", help="reason for the audit log")
    parser.add_argument(
        "--acknowledge", action="append", default=[], choices=[*CODES, ALL_WARNINGS], metavar="CODE",
        help=f"accept a warning of the pre-flight ({', '.join(CODES)}), or all; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--confirm",
        type=int,
        metavar="N",
        help=f"confirm the number of messages; required above {TYPED_ABOVE}",
    )
    parser.add_argument(
        "--wait", action="store_true", help="wait until all messages are moved, and show progress"
    )
    if action == Action.REDIRECT:
        parser.add_argument("--target", required=True, metavar="KEY", help="the receiving setting")
    if action in (Action.GIVE_BACK, Action.REDIRECT):
        parser.add_argument(
            "--per-second", type=float, default=0.0, metavar="N", help="messages per second; 0: no limit"
        )
        parser.add_argument(
            "--window", metavar="HH:MM-HH:MM", help="move messages only between these times of day"
        )
        parser.add_argument(
            "--ladder", action="store_true", help="replay 1, 5, 25, … messages; stop if they fail again"
        )
        parser.add_argument(
            "--ladder-percent", type=int, default=10, metavar="P", help="stop above this failure rate in %%"
        )
        _order_arguments(parser)


def _order_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--in-order",
        choices=InOrder.values,
        default="",
        help="keep the publishing order, before (ahead) or after the waiting messages",
    )
    parser.add_argument(
        "--hold-minutes",
        type=int,
        metavar="N",
        help=f"for ahead: hold the subscription for at most N minutes (default {HOLD_MINUTES})",
    )


def _job_arguments(actions: Any) -> None:
    jobs = actions.add_parser("jobs", help="list replay jobs, newest first")
    for name in ("setting", "state", "action"):
        jobs.add_argument(f"--{name}", dest=f"of_{name}")
    jobs.add_argument("--limit", type=int, default=20, metavar="N")
    add_person_arguments(jobs)
    jobs.set_defaults(run=_jobs)
    one = actions.add_parser("job", help="show a job; with --letters every message of it, as JSON lines")
    one.add_argument("id", help=ID_HELP)
    one.add_argument("--letters", action="store_true")
    add_person_arguments(one)
    one.set_defaults(run=_job)
    followed = actions.add_parser("follow", help="show the progress of a job until it ends")
    followed.add_argument("id", help=ID_HELP)
    followed.add_argument("--outcomes", action="store_true", help="continue until every outcome is known")
    add_person_arguments(followed)
    followed.set_defaults(run=_follow)
    for operation in ON_REPLAYS:
        parser = actions.add_parser(operation.verb(), help=f"{operation.verb()} a job")
        parser.add_argument("id", help=ID_HELP)
        for name, each in operation.inputs.items():
            each.add_argument(parser, name)
        add_person_arguments(parser)
        parser.set_defaults(run=_act, operation=operation)


# -- asking --------------------------------------------------------------------------------------------------


def _asked(options: dict[str, Any], action: str) -> dict[str, Any]:
    """The body of the question. Raises CommandError."""
    if sum([options["all"], bool(options["letters"]), options["query"] is not None]) != 1:
        raise CommandError("Specify exactly one of: message ids, --all, --query.")
    asked: dict[str, Any] = {"setting": options["setting"], "action": action}
    if options["all"]:
        asked["all"] = True
    elif options["letters"]:
        asked["letters"] = options["letters"]
    else:
        asked |= {"query": options["query"], "group": options["group"]}
    if options["up_to"] is not None:
        asked["up_to"] = options["up_to"]
    if options.get("target"):
        asked["target"] = options["target"]
    return asked


def _how(options: dict[str, Any]) -> dict[str, Any]:
    if "ladder" not in options:
        return {}
    names = ("per_second", "ladder", "ladder_percent")
    how = {name: options[name] for name in names} | _order(options)
    if options["window"]:
        begin, dash, end = options["window"].partition("-")
        if not dash:
            raise CommandError("--window must have the form 22:00-06:00.")
        how |= {"window_from": begin, "window_until": end}
    return how


def _order(options: dict[str, Any]) -> dict[str, Any]:
    order = {"in_order": options["in_order"], "hold_minutes": options["hold_minutes"]}
    return {name: value for name, value in order.items() if value not in ("", None)}


def _preflight(command: BaseCommand, options: dict[str, Any]) -> None:
    asked, person = _asked(options, options["action"]) | _order(options), person_named(options["person"])
    with about_setting(_missing(asked)):
        answer = call_api(person, "POST", "preflight/", asked)
    if options["json"]:
        print_json(command, answer)
    else:
        command.stdout.write("\n".join(terminal.verdict(answer)))
        if answer["newest"] and "letters" not in asked:
            command.stdout.write(terminal.end_of_scope(answer["newest"]))


def _begin(command: BaseCommand, options: dict[str, Any]) -> None:
    asked = _asked(options, options["wanted"]) | _how(options)
    if not options["reason"].strip():
        raise CommandError("--reason is empty.")
    person = person_named(options["person"])
    asked |= {"reason": options["reason"], "acknowledge": _acknowledged(options)}
    asked |= _confirm(person, asked, options["confirm"])
    job = _ask_to_begin(person, asked)
    if options["wait"]:
        job = follow(person, job["id"], command.stderr)
    if options["json"]:
        print_json(command, job)
    else:
        command.stdout.write(f"replay {job['id']} {terminal.progress(job)}")
    if job["state"] != JobState.AWAITING or options["wait"]:
        check_ended(job)
    else:
        command.stderr.write(f"Waiting for a second person: ./ma manage dlq approve {job['id']} --as USER")


def _ask_to_begin(person: User, asked: dict[str, Any]) -> Any:
    """The job. What has to be acknowledged is told as it is said here."""
    try:
        with about_setting(_missing(asked)):
            return call_api(person, "POST", "replays/", asked)
    except Refused as refused:
        if not (codes := refused.told.get("warnings")):
            raise
        said = " ".join(f"--acknowledge {code}" for code in [*asked["acknowledge"], *codes])
        hint = f"Check the pre-flight (dlq preflight), then add {said}."
        raise Refused(refused.told | {"what_to_do": hint}) from refused


def _missing(asked: dict[str, Any]) -> str | None:
    """Returns the one of two named settings that is not there; None: both are."""
    keys = [key for key in (asked["setting"], asked.get("target")) if key]
    known = set(LaunchSetting.objects.filter(key__in=keys).values_list("key", flat=True))
    return next((key for key in keys if key not in known), None)


def _acknowledged(options: dict[str, Any]) -> list[str]:
    return list(CODES) if ALL_WARNINGS in options["acknowledge"] else options["acknowledge"]


def _confirm(person: User, asked: dict[str, Any], confirmed: int | None) -> dict[str, int]:
    """Above TYPED_ABOVE somebody says how many go: with --confirm, or at the terminal. Returns where the
    counted scope ends. Of those who may not nobody asks that: the question itself is refused, and kept."""
    try:
        answer = call_api(
            person, "POST", "preflight/", {name: asked[name] for name in asked if name != "acknowledge"}
        )
    except Refused:
        return {}
    going, newest = answer["going"], answer["newest"]
    end = {"up_to": newest} if newest and "letters" not in asked else {}
    if going <= TYPED_ABOVE or confirmed == going:
        return end
    asks = f"This affects {going:,} messages. Type the number to confirm: "
    if confirmed is None and sys.stdin.isatty() and is_typed(input(asks), going):
        return end
    raise CommandError(f"No job was created: {going} messages need a confirmation. Add --confirm {going}.")


def _jobs(command: BaseCommand, options: dict[str, Any]) -> None:
    filters = {name: options[f"of_{name}"] for name in ("setting", "state", "action")}
    person = person_named(options["person"])
    rows = call_api(person, "GET", "replays/", page_size=options["limit"], **filters)["results"]
    if options["json"]:
        print_json(command, rows)
    else:
        command.stdout.write("".join(f"{terminal.job(row)}\n" for row in rows), ending="")


def _job(command: BaseCommand, options: dict[str, Any]) -> None:
    person = person_named(options["person"])
    job = full_id(person, options["id"])
    if options["letters"]:
        _letters(command, person, job)
        return
    answer = call_api(person, "GET", f"replays/{job}/")
    if options["json"]:
        print_json(command, answer)
    else:
        command.stdout.write("\n".join(terminal.job_lines(answer)))


def _letters(command: BaseCommand, person: User, job: str) -> None:
    """Page by page, as the interface gives them."""
    cursor: dict[str, Any] = {}
    while True:
        answer = call_api(person, "GET", f"replays/{job}/letters/", page_size=500, **cursor)
        for row in answer["results"]:
            command.stdout.write(json.dumps(row))
        if not answer.get("next"):
            return
        cursor = dict(_query(answer["next"]))


def _query(url: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in parse_qsl(urlsplit(url).query) if name != "page_size"]


def _follow(command: BaseCommand, options: dict[str, Any]) -> None:
    person = person_named(options["person"])
    answer = follow(person, full_id(person, options["id"]), command.stderr, outcomes=options["outcomes"])
    if options["json"]:
        print_json(command, answer)
    check_ended(answer)


def _act(command: BaseCommand, options: dict[str, Any]) -> None:
    operation, person = options["operation"], person_named(options["person"])
    job = full_id(person, options["id"])
    given = {name: each.from_command(options[name]) for name, each in operation.inputs.items()}
    with as_refused(f"replays/{job}"):
        perform(operation, _seen(person, operation.code, job), person, **given)
    answer = call_api(person, "GET", f"replays/{job}/")
    if options["json"]:
        print_json(command, answer)
    else:
        command.stdout.write(f"replay {answer['id']} {terminal.progress(answer)}")


def _seen(person: User, code: str, job: str) -> ReplayJob:
    """Raises PermissionDenied, DoesNotExist: that it was tried is in the audit."""
    about: dict[str, Any] = {"by": person, "target": f"replay:{job}"}
    with attempt(code, **about):
        found = REPLAY_JOBS.rows_for(person).filter(pk=job).first()
    if found is None:
        record_refused(code, why=HIDDEN, **about)
        raise ReplayJob.DoesNotExist
    return found
