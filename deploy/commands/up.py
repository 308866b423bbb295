"""./ma up: everything, from a bare machine to an address to open; repeatable, and quick where nothing is
missing. ./ma demo, ./ma down."""

import os
import signal
import time
from types import FrameType

from deploy import certificates, manage, pipeline_default, secret_files
from deploy.config import REPOSITORY, Config
from deploy.console import DeployError, Say
from deploy.console import say_if_heard as say
from deploy.environment import Process, expand, parse_procfile
from deploy.installing import artemis_download, python_packages, system_packages
from deploy.layout import Layout
from deploy.processes import earlier_starts, order
from deploy.processes.order import DEMO, Start, offered_agents
from deploy.processes.runner import Runner, allow_open_files
from deploy.services import artemis, ports, redis
from deploy.services.artemis import BrokerPorts, BrokerTls


def processes(config: Config) -> tuple[Process, ...]:
    return expand(parse_procfile((REPOSITORY / "Procfile").read_text("utf-8")), config.servers)


def install_all(layout: Layout, say: Say) -> None:
    """What comes from the network: system packages, Python packages, the broker."""
    layout.make_folders()
    log = layout.log("install")
    lines = python_packages.for_start()
    wanting = not python_packages.installed(lines, "start")
    unpacked = artemis_download.unpacked_in(layout.data).exists()
    system_packages.ensure_installed(
        system_packages.needs_of_start(broker=not unpacked, virtual_environment=wanting), log, say
    )
    if wanting:
        say("installing Python packages into .venv (first start only, some minutes)")
        python_packages.install(lines, "start", log)
    if not unpacked:
        say(f"unpacking Apache Artemis {artemis_download.VERSION}")
    artemis_download.ensure_unpacked(layout.data, log)


def configure(config: Config, layout: Layout) -> None:
    """Writes what broker and Redis read; neither may be running."""
    if config.tls:
        certificates.ensure(config, layout)
    files = certificates.files_of(layout)
    secret_files.ensure_all(config, layout, files.authority if config.tls else None)
    artemis.create_instance(
        artemis_download.unpacked_in(layout.data),
        layout.broker,
        BrokerPorts(config.amqp_port, config.stomp_port, config.core_port),
        secret_files.broker_passwords(layout),
        BrokerTls(files.pair) if config.tls else None,
    )
    pair = (files.certificate, files.key) if config.tls else None
    redis.write_config(layout.redis, secret_files.read_secret(layout.secrets / "redis_url"), pair)
    pipeline_default.decide(config, layout)
    for server in config.servers:
        layout.kma(server).mkdir(parents=True, exist_ok=True)


WATCH_SECONDS = 2.0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def up(config: Config, *, detach: bool, demo: bool, adopt_broker: bool = False) -> int:
    layout = Layout(config.data)
    secret_files.refuse_unreadable(config)
    allow_open_files()
    if not layout.run.exists():
        # Where nothing was ever started a start that is refused leaves no folders behind.
        _refuse_what_is_in_the_way(config, layout)
    end_on_signals()
    started = False
    try:
        with earlier_starts.only_one(layout):
            if _runs_already(config, layout):
                return 0
            last_words = _start(config, layout, demo=demo, adopt_broker=adopt_broker)
        started = True
        if not detach:
            say("Ctrl-C stops everything; ended processes are restarted automatically (./ma status)")
        say(last_words)
        if not detach:
            _stay(layout)
    except KeyboardInterrupt:
        say("stopping" if started else "interrupted: stopping the started processes")
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
    say(f"the last start ended before it started {', '.join(never_began)}: restarting everything")
    order.stop_everything(layout, say)
    return False


def refuse_half_restored(layout: Layout) -> None:
    if layout.restore_marker.exists():
        raise DeployError(
            f"a restore into {layout.data} was interrupted: run ./ma restore --apply once more. What was "
            "there before is kept beside it"
        )


def _refuse_what_is_in_the_way(config: Config, layout: Layout) -> None:
    refuse_half_restored(layout)
    if earlier_starts.find(layout):
        raise DeployError(
            "processes of an earlier start are still running, their runner was killed: ./ma down stops them"
        )
    ports.refuse_taken(ports.wanted_by(config))


def _start(config: Config, layout: Layout, *, demo: bool, adopt_broker: bool) -> str:
    """Returns the block that is printed last."""
    wanted = processes(config)
    _refuse_what_is_in_the_way(config, layout)
    install_all(layout, say)
    manage.refuse_database_of_before(config, layout)
    # From here on everything that is written is this user's alone: messages and protocols are not for others.
    os.umask(0o077)
    configure(config, layout)
    try:
        administrator = Start(config, layout, wanted, say).everything(demo=demo, adopt_broker=adopt_broker)
    except manage.ForeignBroker:
        # Nothing of this site was made there. What goes on running would be in the way of the next start.
        order.stop_everything(layout, say)
        raise
    except DeployError as problem:
        raise DeployError(
            f"{problem}\nThe started processes keep running: ./ma status, ./ma logs NAME, ./ma down"
        ) from None
    say(offered_agents(config, demo=demo))
    if python_packages.install_in_background(layout):
        say(
            f"{python_packages.LARGE} is being installed in the background (./ma logs "
            f"{python_packages.LARGE})"
        )
    return order.closing_block(config, administrator)


def _stay(layout: Layout) -> None:
    runner = Runner(layout)
    while runner.alive():
        time.sleep(WATCH_SECONDS)
    say("stopped by another command")


def end_on_signals() -> None:
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
        say("demo stopped: no more orders; its agents stay available until ./ma down, ./ma up --no-demo")
        return 0
    starting = Start(config, layout, processes(config), say)
    starting.offer_demo_agents()
    administrator = order.prepare_demo(config, layout)
    starting.publish_demo()
    say(order.offered_agents(config, demo=True))
    say(order.closing_block(config, administrator))
    return 0
