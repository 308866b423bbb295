"""Starts the processes in the order in which they need each other, and says so as each gets ready."""

import time
from collections.abc import Iterable

from deploy import manage, readiness, remembered, runner_config, site_health
from deploy.closing import Account, account_in
from deploy.config import Config
from deploy.installation import Say
from deploy.layout import Layout
from deploy.procfile import Process
from deploy.runner import Runner

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
        runner_config.write(self.processes, self.config, self.layout, demo=demo)
        self.runner.begin()
        self._begin(FIRST)
        manage.quietly(self.config, self.layout, "prepare", "database")
        # It asks nothing of the broker by itself, so it may load while the broker is claimed.
        self._begin(SITE)
        self._until_ready(FIRST)
        administrator = self._prepare_content(demo=demo, adopt_broker=adopt_broker)
        # From here on this is the environment that the other commands mean.
        remembered.keep(self.config, self.layout)
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
            if not runner_config.is_written(process, self.config, self.layout, demo=True):
                self.runner.stop(process.name)
                runner_config.write_script(process, self.config, self.layout, demo=True)
        self._begin(KMA)
        self._until_ready(KMA)

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
        health = site_health.Latest(self.config)
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
        return f"{agents}: those of {named}"
    if demo:
        return (
            f"{agents}: the samples of the demo, which do what a message or a parameter says "
            f"(without: --no-demo)"
        )
    return (
        f"{agents}: none. Name your modules in KMA_AGENTS, then ./ma down, ./ma up --no-demo (docs/agents.md)"
    )


def prepare_demo(config: Config, layout: Layout) -> Account:
    """Idempotent."""
    return account_in(manage.printed(config, layout, "create_demo", *manage.demo_arguments(config, layout)))
