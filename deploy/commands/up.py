"""./ma up: everything, from a bare machine to an address to open. ./ma demo, ./ma down."""

import os
import signal
import time
from types import FrameType

from deploy import manage, secret_files
from deploy.config import Config
from deploy.console import DeployError
from deploy.console import say_if_heard as say
from deploy.installing import installation, python_packages
from deploy.layout import Layout
from deploy.processes import earlier_starts, order
from deploy.processes.order import DEMO, Start, offered_agents
from deploy.processes.runner import Runner, allow_open_files
from deploy.services import ports

WATCH_SECONDS = 2.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def up(config: Config, *, detach: bool, demo: bool, adopt_broker: bool = False) -> int:
    layout = Layout(config.data)
    secret_files.refuse_unreadable(config)
    allow_open_files()
    if not layout.run.exists():
        # Where nothing was ever started a start that is refused leaves no folders behind.
        _refuse_what_is_in_the_way(config, layout)
    _end_on_signals()
    started = False
    try:
        with earlier_starts.only_one(layout):
            if _runs_already(config, layout):
                return 0
            _start(config, layout, demo=demo, adopt_broker=adopt_broker)
        started = True
        if not detach:
            _stay(layout)
    except KeyboardInterrupt:
        say("stopping" if started else "interrupted: stopping what has started")
        order.stop_everything(layout, say)
        return 0 if started else 130
    return 0


def _runs_already(config: Config, layout: Layout) -> bool:
    """A start that was killed, or refused half way, leaves a runner with processes that it never began: what
    runs of them has the environment of then, so all of it is stopped in order and started anew."""
    runner = Runner(layout)
    if not runner.alive():
        return False
    never_began = [each.name for each in runner.states() if each.state == "STOPPED" and each.name not in DEMO]
    if not never_began:
        say(f"already running: {config.address} (./ma status, ./ma down)")
        return True
    say(f"an earlier start ended before it came to {', '.join(never_began)}: starting anew")
    order.stop_everything(layout, say)
    return False


def _refuse_what_is_in_the_way(config: Config, layout: Layout) -> None:
    if earlier_starts.find(layout):
        raise DeployError(
            "processes of an earlier start still run although their runner was killed: ./ma down ends them"
        )
    ports.refuse_taken(ports.wanted_by(config))


def _start(config: Config, layout: Layout, *, demo: bool, adopt_broker: bool) -> None:
    processes = installation.processes(config)
    _refuse_what_is_in_the_way(config, layout)
    installation.install_all(layout, say)
    manage.refuse_database_of_before(config, layout)
    # From here on everything that is written is this user's alone: messages and protocols are not for others.
    os.umask(0o077)
    installation.configure(config, layout)
    try:
        administrator = Start(config, layout, processes, say).everything(demo=demo, adopt_broker=adopt_broker)
    except manage.ForeignBroker:
        # Nothing of this site was made there. What goes on running would be in the way of the next start.
        order.stop_everything(layout, say)
        raise
    except DeployError as problem:
        raise DeployError(
            f"{problem}\nWhat has started goes on running: ./ma status, ./ma logs NAME, ./ma down"
        ) from None
    say(offered_agents(config, demo=demo))
    if python_packages.install_in_background(layout):
        say(
            f"{python_packages.LARGE} is being installed in the background (./ma logs "
            f"{python_packages.LARGE})"
        )
    say(order.closing_block(config, administrator))


def _stay(layout: Layout) -> None:
    say("Ctrl-C stops everything; processes that end are started again (./ma status)")
    runner = Runner(layout)
    while runner.alive():
        time.sleep(WATCH_SECONDS)
    say("stopped from elsewhere")


def _end_on_signals() -> None:
    """A closed terminal or a `kill` stops everything in order, as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        # A second one must not leave half of it running; a closed terminal sends it through the shell once
        # more.
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in ENDING:
        signal.signal(number, interrupt)


def down(config: Config) -> int:
    """Everything ends, in order."""
    say("down" if order.stop_everything(Layout(config.data), say) else "nothing is running")
    return 0


def demo(config: Config, *, stop: bool) -> int:
    """Offers the demo's agents, makes its settings and publishes its orders. `stop`: ends the publishing."""
    layout = Layout(config.data)
    runner = Runner(layout)
    if not runner.alive():
        raise DeployError("nothing is running: ./ma up")
    if stop:
        runner.stop("demo")
        say("demo stopped: no more orders; its agents are offered until ./ma down, ./ma up --no-demo")
        return 0
    starting = Start(config, layout, installation.processes(config), say)
    starting.offer_demo_agents()
    administrator = order.prepare_demo(config, layout)
    starting.publish_demo()
    say(order.offered_agents(config, demo=True))
    say(order.closing_block(config, administrator))
    return 0
