"""A bare root of Debian, with Python and nothing else: the package of the KMA is installed and runs there."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.release import version
from tests.deploy.test_release import built
from tests.kma.fake_ma import FakeMa
from tests.web.real_site import until

pytestmark = [pytest.mark.night, pytest.mark.timeout(1800)]

START = """
set -e
python3 -m venv /opt/kma
cd /dist
/opt/kma/bin/pip install -q --no-index --find-links . --require-hashes -r ma-kma.lock.txt
exec /opt/kma/bin/kma
"""


def bootstrapped(root: Path, release: str) -> None:
    """From where this machine has its packages."""
    asked = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"]
    site = subprocess.check_output(asked, text=True).splitlines()[0]
    packages = "--include=python3,python3-venv"
    subprocess.run(["debootstrap", "--variant=minbase", packages, release, str(root), site], check=True)


@pytest.fixture(scope="module")
def dist(child_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("built"), 0o022)


@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_a_kma_runs_without_a_compiler_and_without_an_index(release: str, dist: Path, tmp_path: Path) -> None:
    """Python 3.11 and 3.13, glibc 2.36 and 2.41, OpenSSL 3.0 and 3.5."""
    root = tmp_path / "root"
    bootstrapped(root, release)
    shutil.copytree(dist, root / "dist")
    (root / "start.sh").write_text(START)
    for program in ("gcc", "cc", "make", "git"):
        assert not (root / "usr" / "bin" / program).exists()

    ma = FakeMa()
    log = tmp_path / "log"
    inside = f'mount -t proc proc "{root}/proc" && exec chroot "{root}" sh /start.sh'
    environ = {
        "PATH": os.defpath + ":/usr/sbin", "HOME": "/root", "KMA_SERVER": ma.server,
        "MA_URL": ma.url, "KMA_TOKEN": ma.token, "KMA_AMQP_URL": "amqp://kma:none@127.0.0.1:1",
    }  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", inside], env=environ, stdout=out, stderr=out
        )
    try:
        until(lambda: ma.heartbeats or process.poll() is not None, seconds=60)
        assert process.poll() is None, log.read_text()
        assert ma.heartbeats[0]["kma_version"] == version()
    finally:
        process.terminate()
        process.wait(60)
