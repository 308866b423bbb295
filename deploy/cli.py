"""The commands of ./ma and their options."""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from deploy import config as configuration
from deploy import disk, last_start, manage, release
from deploy.commands import backup, status, test, up, upgrade
from deploy.config import Config
from deploy.console import DeployError, discard_output
from deploy.last_start import Choice
from deploy.layout import Layout
from deploy.remote import cli as remote

Command = Callable[[Config], int]

# These hand all their arguments on, options included, so argparse must not look at them.
DELEGATED: dict[str, Callable[[Config, Sequence[str]], int]] = {
    "audit": release.audit,
    "bench": test.bench,
    "docs": test.docs,
    "doctor": lambda config, arguments: manage.shown(config, Layout(config.data), "doctor", *arguments),
    "manage": lambda config, arguments: manage.shown(config, Layout(config.data), *arguments),
    "release": release.release,
    "reindex": lambda config, arguments: manage.shown(config, Layout(config.data), "reindex", *arguments),
    "test": test.test,
}

# These begin something of their own; the others are about what was started. `up` is asked where the two
# differ.
OF_THIS_SHELL = ("test", "bench", "docs", "release", "audit")

# Whatever the environment says of another site.
LOCAL = ("up", "down", "status", "logs", "env", "demo", "backup", "restore", "upgrade", *DELEGATED)


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
            f"ma: {what}. Run ma as the owner of the data folder, or set MA_DATA to another folder.",
            file=sys.stderr,
        )
        return 1
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _report_full_disk(error)
        if error.errno in (errno.EIO, errno.EROFS):
            print(f"ma: disk error: {error}. Check the system log (dmesg).", file=sys.stderr)
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
        environ = os.environ | ({"MA_TLS": "1"} if chosen.tls else {})
        config = last_start.config_for_start(environ, chosen.choice)
        return up.up(config, detach=chosen.detach, demo=chosen.demo, adopt_broker=chosen.adopt_broker)
    commands: dict[str, Command] = {
        "down": up.down,
        "status": lambda config: status.status(config, as_json=chosen.json),
        "logs": lambda config: status.logs(
            config, name=chosen.name, follow=chosen.follow, lines=chosen.lines
        ),
        "env": lambda config: status.env(config, as_json=chosen.json),
        "demo": lambda config: up.demo(config, stop=chosen.stop),
        "backup": lambda config: backup.backup(config, chosen),
        "upgrade": lambda config: upgrade.upgrade(config, chosen),
        "restore": lambda config: backup.restored(config, chosen),
    }
    return commands[chosen.command](_config(chosen.command))


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ma",
        description="Starts, stops and checks this installation.",
        epilog="Environment variables set ports, data folder and server names: docs/reference/environment.md."
        " To use a site over REST, pass --url or set MA_URL: docs/how-to/remote.md.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    starting = commands.add_parser("up", help="install missing packages and start everything")
    starting.add_argument("--detach", action="store_true", help="return once everything is ready")
    starting.add_argument(
        "--no-demo", dest="demo", action="store_false", help="start without demo settings and orders"
    )
    starting.add_argument(
        "--tls", action="store_true", help="encrypt every connection, by an authority of this installation"
    )
    _add_choice(starting)
    starting.add_argument(
        "--adopt-broker", action="store_true", help="take the broker over from another site"
    )
    commands.add_parser("down", help="stop everything")
    commands.add_parser("status", help="show the state of each process").add_argument(
        "--json", action="store_true"
    )
    reading = commands.add_parser("logs", help="show the log of a process; without a name, list all logs")
    reading.add_argument("name", nargs="?")
    reading.add_argument("-f", "--follow", action="store_true")
    reading.add_argument("-n", "--lines", type=int, default=100)
    commands.add_parser("env", help="print the connection variables for scripts").add_argument(
        "--json", action="store_true"
    )
    commands.add_parser("demo", help="publish demo orders").add_argument("--stop", action="store_true")
    backup.add_parsers(commands)
    upgrade.add_parser(commands)
    # Only for the list of commands: they are dispatched before.
    commands.add_parser("doctor", help="check the installation and recommend actions")
    commands.add_parser("reindex", help="rebuild the full-text index of dead letters")
    commands.add_parser(
        "manage", help="run a manage.py command in this installation's environment: ./ma manage COMMAND …"
    )
    commands.add_parser(
        "test",
        help="install test requirements and run the tests: ./ma test [--changed] [--night] [--long] "
        "[ARGUMENTS]",
    )
    commands.add_parser(
        "bench", help="benchmark the product against a bare reference: ./ma bench NAME [--json]"
    )
    commands.add_parser("release", help="build the packages: ./ma release [FOLDER]")
    commands.add_parser("audit", help="check the licences of all packages")
    commands.add_parser("docs", help="build the documentation site: ./ma docs [FOLDER]")
    return parser


def _add_choice(starting: argparse.ArgumentParser) -> None:
    """What to do where the shell has another database, port or archive than the last start."""
    group = starting.add_mutually_exclusive_group()
    options = (
        (
            Choice.REMEMBERED,
            "use the database, ports and archive of the last start and ignore this shell's values",
        ),
        (
            Choice.CHANGED,
            "use this shell's database, ports and archive instead of those of the last start",
        ),
    )
    for choice, text in options:
        group.add_argument(f"--{choice.value}", dest="choice", action="store_const", const=choice, help=text)
    starting.set_defaults(choice=Choice.REFUSE)
