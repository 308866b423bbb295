"""What the last `./ma up` was started with: the other commands mean that installation also from a shell that does not
set it again. A command that knew of no archive would erase nothing there, and retention would wait for nothing."""

import json
from collections.abc import Mapping
from pathlib import Path

from deploy import config as configuration
from deploy import secret_files
from deploy.config import Config
from deploy.layout import Layout


def keep(config: Config, layout: Layout) -> None:
    values = {
        "MA_HOST": config.host,
        "MA_PORT": str(config.port),
        "MA_AMQP_PORT": str(config.amqp_port),
        "MA_STOMP_PORT": str(config.stomp_port),
        "MA_CORE_PORT": str(config.core_port),
        "MA_REDIS_PORT": str(config.redis_port),
        "MA_SERVERS": ",".join(config.servers),
        **config.handed_on,
    }
    secret_files.write(_file(layout), json.dumps(values, indent=1))


def read(environ: Mapping[str, str]) -> Config:
    """What the shell sets counts, also where it sets it to nothing. Raises Problem."""
    now = configuration.read(environ)
    try:
        known = json.loads(_file(Layout(now.data)).read_text("utf-8"))
    except (OSError, ValueError):  # nothing was started here yet, or by somebody else
        return now
    return configuration.read({**known, **environ})


def _file(layout: Layout) -> Path:
    return layout.run / "environment.json"
