"""The commands of ./ma and their options."""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from deploy import config as configuration
from deploy import disk, last_start, manage
from deploy.commands import status, test, up
from deploy.config import Config
from deploy.console import DeployError, discard_output
from deploy.last_start import Choice
from deploy.layout import Layout
from deploy.remote import cli as remote

Command = Callable[[Config], int]

# These hand all their arguments on, options included, so argparse must not look at them.
DELEGATED: dict[str, Callable[[Config, Sequence[str]], int]] = {
    "bench": test.bench,
    "docs": test.docs,
    "doctor": lambda config, arguments: manage.shown(config, Layout(config.data), "doctor", *arguments),
    "manage": lambda config, arguments: manage.shown(config, Layout(config.data), *arguments),
    "reindex": lambda config, arguments: manage.shown(config, Layout(config.data), "reindex", *arguments),
    "test": test.test,
}

# These begin something of their own; the others are about what was started. `up` is asked where the two
# differ.
OF_THIS_SHELL = ("test", "bench", "docs")

# Whatever the environment says of another site.
LOCAL = ("up", "down", "status", "logs", "env", "demo", *DELEGATED)


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if remote.is_meant(given, os.environ, LOCAL):
            return remote.main(given, os.environ, LOCAL)
        if given and given[0] in DELEGATED:
            return DELEGATED[given[0]](_config(given[0]), given[1:])
        return _command(given)
    except DeployError as problem:
        print(f"ma: {problem}", file=sys.stderr)
        return 1
    except PermissionError as error:
        what = f"{error.filename or 'a file'}: {error.strerror}"
        print(
            f"ma: {what}. Run ma as the user who owns the data folder, or name another in MA_DATA.",
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _report_full_disk(error)
        if error.errno in (errno.EIO, errno.EROFS):
            print(f"ma: the disk fails: {error}. Look into the system's log (dmesg).", file=sys.stderr)
            return 1
        raise
    except KeyboardInterrupt:
        return 130


def _report_full_disk(error: OSError) -> int:
    """Of any command; what it printed may be what the disk did not take."""
    discard_output()
    print(f"ma: the disk is full: {error}", file=sys.stderr)
    with suppress(DeployError, OSError):
        layout = Layout(_config("status").data)
        for line in disk.lines(layout, disk.file_systems(layout)):
            print(line, file=sys.stderr)
    return 1


def _config(command: str) -> Config:
    read = configuration.read if command in OF_THIS_SHELL else last_start.config_of_last_start
    return read(os.environ)


def _command(arguments: Sequence[str]) -> int:
    chosen = parser().parse_args(arguments)
    if chosen.command == "up":
        config = last_start.config_for_start(os.environ, chosen.choice)
        return up.up(config, detach=chosen.detach, demo=chosen.demo, adopt_broker=chosen.adopt_broker)
    commands: dict[str, Command] = {
        "down": up.down,
        "status": lambda config: status.status(config, as_json=chosen.json),
        "logs": lambda config: status.logs(
            config, name=chosen.name, follow=chosen.follow, lines=chosen.lines
        ),
        "env": lambda config: status.env(config, as_json=chosen.json),
        "demo": lambda config: up.demo(config, stop=chosen.stop),
    }
    return commands[chosen.command](_config(chosen.command))


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ma",
        description="Starts, stops and checks this installation.",
        epilog="Ports, data folder and server names come from the environment: docs/how-to/operations.md. "
        "Another site, or this one over REST: --url, or MA_URL: docs/how-to/remote.md.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    starting = commands.add_parser("up", help="install what is missing and start everything")
    starting.add_argument("--detach", action="store_true", help="return once everything is ready")
    starting.add_argument(
        "--no-demo", dest="demo", action="store_false", help="without demo settings and orders"
    )
    _add_choice(starting)
    starting.add_argument(
        "--adopt-broker", action="store_true", help="take the broker over from another site, on purpose"
    )
    commands.add_parser("down", help="stop everything")
    commands.add_parser("status", help="state of each process").add_argument("--json", action="store_true")
    reading = commands.add_parser("logs", help="the log of a process; without a name: which there are")
    reading.add_argument("name", nargs="?")
    reading.add_argument("-f", "--follow", action="store_true")
    reading.add_argument("-n", "--lines", type=int, default=100)
    commands.add_parser("env", help="what a script needs to connect").add_argument(
        "--json", action="store_true"
    )
    commands.add_parser("demo", help="publish demo orders").add_argument("--stop", action="store_true")
    # Only for the list of commands: they are dispatched before.
    commands.add_parser("doctor", help="check everything and say what to do")
    commands.add_parser("reindex", help="build the index of words of dead letters again")
    commands.add_parser(
        "manage", help="manage.py with this installation's environment: ./ma manage COMMAND …"
    )
    commands.add_parser(
        "test",
        help="install what tests need and run them: ./ma test [--changed] [--night] [--long] [ARGUMENTS]",
    )
    commands.add_parser("bench", help="measure the product beside a bare reference: ./ma bench NAME [--json]")
    commands.add_parser("docs", help="build the documentation site: ./ma docs [FOLDER]")
    return parser


def _add_choice(starting: argparse.ArgumentParser) -> None:
    """What to do where the shell has another database, port or archive than the last start."""
    group = starting.add_mutually_exclusive_group()
    options = (
        (
            Choice.REMEMBERED,
            "go on with database, ports and archive of the last start, whatever this shell sets",
        ),
        (
            Choice.CHANGED,
            "start with this shell's database, ports and archive although the last start had others",
        ),
    )
    for choice, text in options:
        group.add_argument(f"--{choice.value}", dest="choice", action="store_const", const=choice, help=text)
    starting.set_defaults(choice=Choice.REFUSE)
