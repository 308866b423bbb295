"""./ma up: everything, from a bare machine to an address to open."""

import os
import signal
import time
from types import FrameType

from deploy import installation, leftovers, only_one, ports, python_packages, stop
from deploy.config import Config
from deploy.console import say
from deploy.layout import Layout
from deploy.problem import Problem
from deploy.runner import Runner
from deploy.start import Start

WATCH_SECONDS = 2.0


def run(config: Config, *, detach: bool, demo: bool) -> int:
    layout = Layout(config.data)
    if Runner(layout).alive():
        say(f"already running: {config.address} (./ma status, ./ma down)")
        return 0
    _end_on_signals()
    try:
        with only_one.start_of(layout):
            _start(config, layout, demo=demo)
    except KeyboardInterrupt:
        say("interrupted: stopping what has started")
        stop.stop_everything(layout, say)
        return 130
    if detach:
        return 0
    return _stay(layout)


def _start(config: Config, layout: Layout, *, demo: bool) -> None:
    processes = installation.processes(config)
    if leftovers.find(layout):
        raise Problem("processes of an earlier start still run although their runner was killed: ./ma down ends them")
    ports.refuse_taken(ports.wanted_by(config))
    installation.install(layout, say)
    # From here on everything that is written is this user's alone: messages and protocols are not for others.
    os.umask(0o077)
    installation.configure(config, layout)
    try:
        Start(config, layout, processes, say).everything(demo=demo)
    except Problem as problem:
        raise Problem(f"{problem}\nWhat has started goes on running: ./ma status, ./ma logs NAME, ./ma down") from None
    if not demo:
        say("no demo: ./ma manage createsuperuser makes an administrator")
    if python_packages.install_in_background(layout):
        say(f"{python_packages.LARGE} is being installed in the background (./ma logs {python_packages.LARGE})")
    say(f"open {config.address}")


def _stay(layout: Layout) -> int:
    say("Ctrl-C stops everything; processes that end are started again (./ma status)")
    runner = Runner(layout)
    try:
        while runner.alive():
            time.sleep(WATCH_SECONDS)
        say("stopped from elsewhere")
    except KeyboardInterrupt:
        say("stopping")
        # A second Ctrl-C must not leave half of it running.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stop.stop_everything(layout, say)
    return 0


def _end_on_signals() -> None:
    """A closed terminal or a `kill` stops everything in order, as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
