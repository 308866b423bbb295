"""The environment that ma_site/env.py and kma/host/config.py ask for, with values good for tests only."""

import os
import tempfile
from pathlib import Path

DATA = Path(tempfile.gettempdir()) / f"ma-tests-{os.getuid()}-{os.getpid()}"


def values(data: Path) -> dict[str, str]:
    return {
        "MA_SECRET_KEY": "only-for-tests-only-for-tests-only-for-tests-only-for-tests",
        "MA_DATABASE_URL": f"sqlite://{data / 'db.sqlite3'}",
        "MA_REDIS_URL": "redis://:none@127.0.0.1:1/0",
        "MA_AMQP_URL": "amqp://127.0.0.1:1",
        "MA_STOMP_ADDRESS": "127.0.0.1:1",
        "MA_BROKER_USER": "ma-ops",
        "MA_BROKER_PASSWORD": "none",
        "MA_ALLOWED_HOSTS": "testserver,localhost,127.0.0.1",
        "MA_BASE_URL": "http://testserver",
        "MA_DATA": str(data),
        "MA_URL": "http://127.0.0.1:1",
        "KMA_SERVER": "srv-1",
        "KMA_TOKEN": "none",
        "KMA_AGENTS": "kma.samples.scripted",
        "KMA_SAMPLES_ANYWHERE": "1",
        "KMA_DATA": str(data / "kma"),
        "KMA_AMQP_URL": "amqp://127.0.0.1:1",
        "KMA_BROKER_USER": "kma",
        "KMA_BROKER_PASSWORD": "none",
        "KMA_REDIS_URL": "redis://:none@127.0.0.1:1/0",
    }


VALUES = values(DATA)


def fill_in(data: Path = DATA) -> None:
    """Replaces what a person's own shell may hold: a test never touches a real installation."""
    for name in list(os.environ):
        if name.startswith(("MA_", "KMA_")) and not name.startswith("MA_TEST_"):
            del os.environ[name]
    os.environ.update(values(data))
