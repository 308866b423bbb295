"""The order in which processes are started and ended, and what is said of it."""

import re
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from deploy import last_start, manage, secret_files
from deploy.config import Config
from deploy.console import Say
from deploy.environment import Process
from deploy.layout import Layout
from deploy.processes import earlier_starts, readiness
from deploy.processes.runner import Runner, is_script_written, write_runner_files, write_script

# -- the last lines of `./ma up`: where to go, as whom, and what to do next ----------------------------------


ADMINISTRATOR = re.compile(r"administrator: (?P<user>\S+)  password: (?P<password>\S+)")


@dataclass(frozen=True)
class Account:
    """`password` empty: it is not the one that was made here any more, or nobody here ever knew it."""

    user: str
    password: str = field(default="", repr=False)


def account_in(said: str) -> Account:
    """What `create_demo` printed."""
    found = ADMINISTRATOR.search(said)
    return Account(found["user"], found["password"]) if found else Account("admin")


def closing_block(config: Config, administrator: Account | None) -> str:
    """Without a demo there is no administrator that anybody here knows of."""
    return "\n".join(
        (
            "",
            "MA is ready.",
            "",
            *(f"  {name + ':':<9} {text}" for name, text in _lines(config, administrator)),
        )
    )


def _lines(config: Config, administrator: Account | None) -> list[tuple[str, str]]:
    lines = [("address", config.address)]
    if administrator is None:
        lines.append(("user", "your own; ./ma manage createsuperuser creates an administrator"))
        following = "write an agent (docs/tutorials/first-agent.md) and add its module to KMA_AGENTS"
    else:
        lines.append(("user", administrator.user))
        change = f"./ma manage changepassword {administrator.user}"
        if administrator.password:
            lines.append(("password", f"{administrator.password}  (generated; change it: {change})"))
        else:
            lines.append(("password", f"as you set it; to reset it: {change}"))
        following = (
            "wait 2 minutes, then open Dead letters: demo orders fail intentionally; see why and replay"
        )
    lines.append(("next", following))
    lines.append(("check", "./ma doctor; ./ma status; ./ma logs NAME; ./ma down stops everything"))
    lines.append(("docs", "docs/index.md; docs/tutorials/operator.md; docs/how-to/operations.md"))
    return lines


# -- order ---------------------------------------------------------------------------------------------------


# The site gets ready while the broker is filled. All else starts together once the broker has its queues,
# which keep what the demo publishes. A KMA that finds no site yet asks again.
FIRST = ("artemis", "redis")
SITE = ("web",)
OTHERS = ("worker", "beat", "feed", "kma")
KMA = ("kma",)
DEMO = ("demo",)


class Start:
    def __init__(self, config: Config, layout: Layout, processes: tuple[Process, ...], say: Say) -> None:
        self.config = config
        self.layout = layout
        self.processes = processes
        self.say = say
        self.runner = Runner(layout)
        self.began: dict[str, float] = {}

    def everything(self, *, demo: bool, adopt_broker: bool) -> Account | None:
        """The administrator of the demo, where there is a demo."""
        write_runner_files(self.processes, self.config, self.layout, demo=demo)
        self.runner.begin()
        self._begin(FIRST)
        manage.quietly(self.config, self.layout, "prepare", "database")
        # It asks nothing of the broker by itself, so it may load while the broker is claimed.
        self._begin(SITE)
        self._until_ready(FIRST)
        administrator = self._prepare_content(demo=demo, adopt_broker=adopt_broker)
        # From here on this is the environment that the other commands mean.
        last_start.keep(self.config, self.layout)
        others = OTHERS + DEMO if demo else OTHERS
        self._begin(others)
        self._until_ready(SITE + others)
        return administrator

    def offer_demo_agents(self) -> None:
        """Restarts the KMAs that do not offer the demo's agents yet: a KMA reads what it offers once.

        Whoever is killed here leaves a KMA stopped, or stopped with its new script; the next `./ma demo`
        starts it.
        """
        for process in self._of(KMA):
            if not is_script_written(process, self.config, self.layout, demo=True):
                self.runner.stop(process.name)
                write_script(process, self.config, self.layout, demo=True)
        self._begin(KMA)
        self._until_ready(KMA)

    def roll(self, *, demo: bool, offers: bool) -> None:
        """Everything but broker and Redis from another version to this one: the site, then one KMA after the
        other. `offers`: KMAs offer the demo's agents; `demo`: its orders are published."""
        write_runner_files(self.processes, self.config, self.layout, demo=offers)
        site = [*SITE, *(kind for kind in OTHERS if kind not in KMA)]
        for process in reversed(self._of(site)):
            self.runner.stop(process.name)
        manage.quietly(self.config, self.layout, "prepare", "database")
        self._begin(SITE)
        self._until_ready(SITE)
        manage.prepare_content(self.config, self.layout, demo=False, adopt_broker=False)
        last_start.keep(self.config, self.layout)
        self._begin(site)
        self._until_ready(site)
        for process in self._of(KMA):
            self.runner.stop(process.name)
            self._begin(KMA)
            self._until_ready(KMA)
        if demo:
            self.runner.stop(*DEMO)
            self.publish_demo()

    def pause(self) -> list[str]:
        """Stops what runs, in order, and returns its names; the runner stays."""
        names = [state.name for state in self.runner.states() if state.state != "STOPPED"]
        _stop_in_order(self.runner, names, self.say)
        return names

    def go_on(self, names: Sequence[str]) -> None:
        """Starts these again, and returns when they are ready."""
        paused = {process.kind for process in self.processes if process.name in names}
        for kinds in (FIRST, SITE + OTHERS + DEMO):
            again = [kind for kind in kinds if kind in paused]
            self._begin(again)
            self._until_ready(again)

    def publish_demo(self) -> None:
        self._begin(DEMO)
        self._until_ready(DEMO)

    def _prepare_content(self, *, demo: bool, adopt_broker: bool) -> Account | None:
        """The broker claimed, topology on it, the demo's settings, a token for each server."""
        said = manage.prepare_content(self.config, self.layout, demo=demo, adopt_broker=adopt_broker)
        return account_in(said) if demo else None

    def _of(self, kinds: Iterable[str]) -> list[Process]:
        return [process for process in self.processes if process.kind in kinds]

    def _begin(self, kinds: Iterable[str]) -> None:
        for process in self._of(kinds):
            self.began[process.name] = time.monotonic()
            self.runner.start(process.name)

    def _until_ready(self, kinds: Iterable[str]) -> None:
        health = readiness.Latest(self.config)
        pending = [
            (each, readiness.probe(each, self.config, self.layout, self.runner, health))
            for each in self._of(kinds)
        ]
        while pending:
            for process, probe in list(pending):
                waited = time.monotonic() - self.began[process.name]
                if readiness.reached(process, probe, self.runner, self.layout, waited=waited):
                    self.say(f"{process.name:<12} ready ({waited:.1f} s)")
                    pending.remove((process, probe))
            time.sleep(readiness.PAUSE_SECONDS)


def offered_agents(config: Config, *, demo: bool) -> str:
    """The line that says what the KMAs of this machine offer."""
    agents = f"agents of {', '.join(config.servers)}"
    if named := config.handed_on.get("KMA_AGENTS"):
        return f"{agents}: modules {named}"
    if demo:
        return f"{agents}: demo samples, controlled by messages and parameters (without them: --no-demo)"
    return (
        f"{agents}: none. List your modules in KMA_AGENTS, then ./ma down, ./ma up --no-demo "
        "(docs/how-to/agents.md)"
    )


def prepare_demo(config: Config, layout: Layout) -> Account:
    """Idempotent."""
    return account_in(manage.printed(config, layout, "create_demo", *manage.demo_arguments(config, layout)))


# -- ends everything in order: first those who take messages, the broker last --------------------------------


# The KMAs give back what they hold and report it: for that site and broker must still be there.
ORDER = ("kma", "demo", "feed", "beat", "worker", "web", "redis", "artemis")


def stop_everything(layout: Layout, say: Say) -> bool:
    """Whether anything ran."""
    runner = Runner(layout)
    ran = runner.alive()
    if ran:
        _stop_in_order(runner, [state.name for state in runner.states() if state.state != "STOPPED"], say)
        runner.end()
    left = earlier_starts.end(layout)
    if layout.run.is_dir() and not earlier_starts.find(layout):
        # Whoever needs a site that does not run need not wait until its heartbeats are old.
        secret_files.write(layout.stopped, f"{datetime.now(UTC).isoformat()}\n")
    if left and not ran:
        say(f"stopped {left} processes left by a killed runner")
    return ran or left > 0


def _stop_in_order(runner: Runner, running: list[str], say: Say) -> None:
    for names in in_order(running):
        with ThreadPoolExecutor(max_workers=len(names)) as pool:
            list(pool.map(runner.stop, names))
        say(f"{', '.join(names)} stopped")


def in_order(names: list[str]) -> list[list[str]]:
    """Groups to stop one after the other, each at once."""
    groups = [[name for name in names if name == kind or name.startswith(f"{kind}-")] for kind in ORDER]
    unknown = [name for name in names if not any(name in group for group in groups)]
    return [group for group in (unknown, *groups) if group]
