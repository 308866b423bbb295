"""Agents that write down what they do. The parameter `truth` of the setting is the folder they write into.

A file `mended-<setting>` in it makes the agent handle everything well from then on, a file
`broken-<setting>@<server>` makes every handling fail on that server.
"""

import os
import time
from pathlib import Path

from kma.agent import Agent, Context, Message, StandaloneAgent, agent
from kma.samples.scripted import Scripted
from tests.product.three_servers.truth import Event, boot_time, write


class BrokenServer(Exception):
    """What an agent raises on a server that lacks something."""


@agent("test.written", version="1")
class Written(Agent):
    """Does what a message says (see demo.scripted) between two lines in its file."""

    def __init__(self) -> None:
        self._scripted = Scripted()

    def run_agent(self, message: Message, context: Context) -> None:
        folder = Path(str(context.parameters["truth"]))
        _write(folder, context, "begin", message)
        try:
            if (folder / f"broken-{context.setting}@{context.server}").exists():
                raise BrokenServer(f"on {context.server} nothing works")
            if not (folder / f"mended-{context.setting}").exists():
                self._scripted.run_agent(message, context)
        finally:
            _write(folder, context, "end", message)


@agent("test.also-written", version="1")
class AlsoWritten(Written):
    """The same under another name, for pools that allow only one of the two."""


@agent("test.beating", version="1")
class Beating(StandaloneAgent):
    """A standalone agent that is at work: ten signs of life a second until it is stopped, whatever happens
    around."""

    def run_agent(self, context: Context) -> None:
        folder = Path(str(context.parameters["truth"]))
        while not context.stopping:
            sign = Event(
                context.server, context.setting, context.activation, "beat", boot_time(), os.getpid()
            )
            write(folder, sign)
            time.sleep(0.1)


def _write(folder: Path, context: Context, what: str, message: Message) -> None:
    note = int(message.json()["note"])
    at = boot_time()
    write(
        folder,
        Event(
            context.server, context.setting, context.activation, what, at, os.getpid(), note, message.attempt
        ),
    )
