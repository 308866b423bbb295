"""./ma backup, ./ma restore: what they say, and the row that the site keeps of a backup."""

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from deploy import manage
from deploy.backups import create, restore, sealing
from deploy.backups.manifest import LEFT_OUT, SECRETS, Manifest
from deploy.commands import up
from deploy.config import Config
from deploy.console import DeployError, say
from deploy.layout import Layout
from deploy.processes.order import Start


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    saving = commands.add_parser("backup", help="copy database, spools and secrets while everything runs")
    saving.add_argument("target", type=Path, metavar="TARGET", help="folder that holds the backups")
    saving.add_argument(
        "--with-messages",
        action="store_true",
        help="stop everything for the copy, the broker included, and copy its messages too",
    )
    saving.add_argument("--without-secrets", action="store_true", help="leave passwords, tokens and keys out")
    saving.add_argument("--keep", type=_count, default=0, metavar="N", help="delete older backups beyond N")
    _add_passphrase(saving)
    back = commands.add_parser("restore", help="check a backup, or put it back into a stopped installation")
    back.add_argument(
        "backup", type=Path, metavar="BACKUP", help="a backup; of a folder of backups the newest"
    )
    what = back.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true", help="read all of it and change nothing")
    what.add_argument("--apply", action="store_true", help="put it back; what is there is moved aside")
    back.add_argument(
        "--everything",
        action="store_true",
        help="replace spools, messages and secrets too, where the data folder is in use",
    )
    _add_passphrase(back)


def _add_passphrase(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-file", default="", metavar="FILE", help=f"instead of {sealing.VARIABLE} or a prompt"
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of backups: 1 or more")
    return int(text)


def backup(config: Config, chosen: argparse.Namespace) -> int:
    layout = Layout(config.data)
    up.refuse_half_restored(layout)
    manage.refuse_before_first_start(layout)
    phrase = ""
    if not chosen.without_secrets:
        phrase = sealing.passphrase(chosen.passphrase_file, os.environ, twice=True)
    wanted = create.Wanted(chosen.target.absolute(), phrase, chosen.with_messages, chosen.keep)
    standstill = partial(_standstill, config, layout)
    folder, made = create.create(config, layout, wanted, standstill, say)
    say(f"{folder}: whole, {_amount(made.size)}")
    for line in _contents(made):
        say(line)
    _record(config, layout, folder, made)
    return 0


@contextmanager
def _standstill(config: Config, layout: Layout) -> Iterator[None]:
    """All ends in order, and runs again afterwards, whatever happened meanwhile."""
    up.end_on_signals()
    starting = Start(config, layout, up.processes(config), say)
    names = starting.pause()
    try:
        yield
    finally:
        starting.go_on(names)


def _record(config: Config, layout: Layout, folder: Path, made: Manifest) -> None:
    facts = {
        "made_at": made.made_at,
        "place": str(folder),
        "size": made.size,
        "left_out": made.left_out,
        "stopped": made.stopped,
    }
    try:
        manage.quietly(config, layout, "record_backup", json.dumps(facts))
    except DeployError as problem:
        say(f"the backup is whole, but the site could not note it: {problem}")


def restored(config: Config, chosen: argparse.Namespace) -> int:
    layout = Layout(config.data)
    if chosen.apply:
        # Asked first: who is refused need not look for a passphrase.
        restore.refuse_running(layout)
    named = chosen.backup.absolute()
    phrase = ""
    if chosen.passphrase_file or os.environ.get(sealing.VARIABLE):
        phrase = sealing.passphrase(chosen.passphrase_file, os.environ, twice=False)
    if chosen.apply:
        restore.apply(config, layout, named, phrase, whole=chosen.everything, say=say)
        return 0
    checked = restore.check(named, phrase)
    restore.refuse_other_schema(checked.manifest)
    say(f"{checked.folder}: whole, {_amount(checked.manifest.size)}, made {checked.manifest.made_at}")
    for line in _contents(checked.manifest):
        say(line)
    if checked.manifest.of(SECRETS) and not checked.opened:
        say("  secrets were compared, not opened: --passphrase-file opens them")
    return 0


def _contents(made: Manifest) -> list[str]:
    kinds = sorted({part.kind for part in made.parts})
    lines = [f"  version {made.version}, {made.engine}: {', '.join(kinds)}"]
    return lines + [f"  {LEFT_OUT[code]}" for code in made.left_out]


def _amount(size: int) -> str:
    return f"{size / create.MB:.1f} MB"
