"""The product on six hosts from its packages, over TLS: the main job while the live broker is killed twice,
and nothing that is secret on any wire. Without TLS the same capture finds all of it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.test_release import built
from tests.network import capture
from tests.network.installation import Installation, installed
from tests.network.job import PLANTED
from tests.network.pair import until

pytestmark = pytest.mark.night

MESSAGES, POISONED = 2000, 40


@pytest.fixture(scope="module")
def programs(child_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both packages in an environment that was empty, and no index."""
    folder = tmp_path_factory.mktemp("packages")
    dist = built(folder, 0o022)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    pip = [str(folder / "venv" / "bin" / "pip"), "install", "-q", "--no-index", "--find-links", str(dist)]
    subprocess.run([*pip, "ma-kma", "ma-server"], check=True)
    return folder / "venv" / "bin"


@pytest.fixture(params=[True, False], ids=["tls", "clear"])
def six(request: pytest.FixtureRequest, programs: Path, tmp_path: Path) -> Iterator[Installation]:
    with installed(tmp_path, programs, tls=request.param) as made:
        yield made


def said(log: Path) -> dict[str, Any]:
    lines = log.read_text().splitlines() if log.exists() else []
    return dict(json.loads(line) for line in lines if line[:2] == '["')


def test_the_main_job_while_the_live_broker_is_killed_twice_with_nothing_secret_on_the_wire(
    six: Installation,
) -> None:
    tls, log = six.authority is not None, six.net.folder / "job.log"
    truth = six.net.folder / "truth" / "truth-bulk.jsonl"
    with six.net.captured() as files:
        job = six.job("main", MESSAGES if tls else 200, log)
        if tls:
            for part in (1, 2):
                least = part * MESSAGES // 4
                until("a part is handled", lambda: _lines(truth) > least or job.poll() is not None)  # noqa: B023
                six.pair.primary.kill()
                six.pair.until_live(six.pair.backup)
                six.pair.primary.start()
                six.pair.until_live(six.pair.primary)
                six.pair.until_backed_up()
        until(f"the job is over; see {log}", lambda: job.poll() is not None, seconds=600)

    found = said(log)
    assert "end" in found, log.read_text()[-3000:]
    assert found["missing"] == [] and found["mended"] == [1]
    assert found["replayed"] == ["done", POISONED if tls else 4]
    secrets = {"body": PLANTED, "password": six.passwords["kma"], "token": six.tokens["srv-1"]}
    seen = {
        name: sum(capture.found(file, word.encode()) for file in files.values())
        for name, word in secrets.items()
    }
    print(found, seen)
    assert all((count > 0) is not tls for count in seen.values()), seen


def _lines(truth: Path) -> int:
    return truth.read_bytes().count(b"\n") if truth.exists() else 0
