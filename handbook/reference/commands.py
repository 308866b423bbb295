"""Commands with their help, as the parsers print it."""

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module

from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from deploy import cli
from deploy.config import REPOSITORY
from handbook import markdown

WIDTH = "100"


def pages() -> Mapping[str, str]:
    with _wide():
        return {"commands": _ma(), "manage-commands": _manage()}


@contextmanager
def _wide() -> Iterator[None]:
    """Parsers ask the environment how wide a terminal is."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def _ma() -> str:
    parser = cli.parser()
    parts = [
        "Everything on one machine is done by the script `./ma`, from the folder of the clone.",
        markdown.block("text", parser.format_help()),
    ]
    for name, each in _subcommands(parser):
        if name not in cli.DELEGATED:
            parts += [f"## ./ma {name}", markdown.block("text", each.format_help())]
    return markdown.page("Commands of ./ma", *parts)


def _manage() -> str:
    parts = ["`./ma manage COMMAND` runs a command of the site with the environment of this installation."]
    for name, app in sorted(get_commands().items()):
        command = load_command_class(str(app), name)
        if not _is_ours(command):
            continue
        parser = command.create_parser("ma manage", name)
        _hide_common(parser)
        parts += [f"## {name}", markdown.block("text", parser.format_help())]
        for sub, each in _subcommands(parser):
            _hide_common(each)
            parts += [f"### {name} {sub}", markdown.block("text", each.format_help())]
    return markdown.page("Commands of ./ma manage", *parts)


def _is_ours(command: BaseCommand) -> bool:
    package = import_module(type(command).__module__.partition(".")[0])
    return any(REPOSITORY.samefile(os.path.dirname(path) or ".") for path in package.__path__)


def _subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _hide_common(parser: argparse.ArgumentParser) -> None:
    """Options that Django gives to every command."""
    bare = BaseCommand().create_parser("", "")
    common = {option for action in bare._actions for option in action.option_strings} - {"-h", "--help"}
    for action in parser._actions:
        if common.intersection(action.option_strings):
            action.help = argparse.SUPPRESS
