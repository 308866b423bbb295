"""Everything that must be there before the first process starts; repeatable, and quick where nothing is
missing."""

from deploy import pipeline_default, secret_files
from deploy.config import REPOSITORY, Config
from deploy.console import Say
from deploy.installing import artemis_download, python_packages, system_packages
from deploy.layout import Layout
from deploy.processes.procfile import Process, expand, parse
from deploy.services import artemis, redis
from deploy.services.artemis import BrokerPorts


def processes(config: Config) -> tuple[Process, ...]:
    return expand(parse((REPOSITORY / "Procfile").read_text("utf-8")), config.servers)


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
        say("installing the Python packages into .venv (once, some minutes)")
        python_packages.install(lines, "start", log)
    if not unpacked:
        say(f"unpacking Apache Artemis {artemis_download.VERSION}")
    artemis_download.ensure_unpacked(layout.data, log)


def configure(config: Config, layout: Layout) -> None:
    """Writes what broker and Redis read; neither may be running."""
    secret_files.ensure_all(config, layout)
    artemis.create_instance(
        artemis_download.unpacked_in(layout.data),
        layout.broker,
        BrokerPorts(config.amqp_port, config.stomp_port, config.core_port),
        secret_files.broker_passwords(layout),
    )
    redis.write_config(layout.redis, secret_files.read_secret(layout.secrets / "redis_url"))
    pipeline_default.decide(config, layout)
    for server in config.servers:
        layout.kma(server).mkdir(parents=True, exist_ok=True)
