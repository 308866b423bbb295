"""The KMA as a Celery worker: `celery -A kma.app worker --pool=threads --concurrency=1`.

The host is a step of the worker itself, not of its consumer: it runs while Redis is away. The one task,
`kma.poll`, only makes it ask sooner: nothing depends on Redis.
"""

import sys
from typing import Any, NoReturn

from celery import Celery, bootsteps, signals

from contract import redis_url
from kma.host.config import Config, ConfigError, read_config
from kma.host.host import FolderTaken, Host
from kma.logs import configure

ALONE = "memory://"
TIMEOUTS = {"socket_connect_timeout": 5, "socket_keepalive": True}


def queue_of(server: str) -> str:
    """The Celery queue that a server listens to."""
    return f"kma.{server}"


def make_app(config: Config) -> Celery:
    # Without Redis the queue is in memory, where nobody puts anything: the KMA asks by itself.
    address = redis_url.parse(config.redis_url) if config.redis_url else redis_url.RedisAddress(ALONE, {})
    app = Celery("kma", broker=address.url)
    app.conf.update(
        # Without it kombu would take any certificate of a rediss:// server.
        broker_use_ssl=dict(address.tls) or False,
        task_default_queue=queue_of(config.server),
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        task_ignore_result=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options=TIMEOUTS if config.redis_url else {},
        worker_hijack_root_logger=False,
        timezone="UTC",
    )
    return app


class HostStep(bootsteps.StartStopStep):
    """Starts and stops the host with the worker."""

    host: Host | None = None

    def start(self, worker: Any) -> None:
        try:
            host = Host(_config)
        except FolderTaken as error:
            _leave(str(error))
        host.start()
        HostStep.host = host

    def stop(self, worker: Any) -> None:
        host, HostStep.host = HostStep.host, None
        if host is not None:
            host.stop()


def _leave(problem: str) -> NoReturn:
    """One clear line instead of a traceback: the environment is the operator's business."""
    sys.stderr.write(f"{problem}\n")
    raise SystemExit(78)  # EX_CONFIG


def _config_or_leave() -> Config:
    try:
        return read_config()
    except ConfigError as error:
        _leave(str(error))


@signals.setup_logging.connect
def _keep_our_logging(**_: Any) -> None:
    """Connected: Celery leaves logging as it is, JSON lines on standard error."""


_config = _config_or_leave()
configure(_config.log_level)
app = make_app(_config)
app.steps["worker"].add(HostStep)


@app.task(name="kma.poll", ignore_result=True)
def poll() -> None:
    """Ask the MA at once what it wants."""
    if HostStep.host is not None:
        HostStep.host.poll_now()
