"""What ./ma release builds: the same from two clones; and both programs run, installed from there as
docs/how-to/install.md says."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from deploy import release, release_papers
from deploy.config import REPOSITORY
from deploy.console import DeployError
from deploy.installed import read_variables
from deploy.proton_wheel import check_tls, needs_of
from deploy.services.ports import free_ports
from tests import environment
from tests.web.real_site import until

# A release builds Proton and asks the index: two of them are within one test.
pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]
LOCKED = re.compile(
    r"^(\S+)==(\S+) --hash=sha256:([0-9a-f]{64})(?: --hash=sha256:[0-9a-f]{64})*$", re.MULTILINE
)
OURS = ("ma-", "ma_", "python_qpid_proton", "python-qpid-proton")


def built(folder: Path, umask: int, **environ: str) -> Path:
    """By a clone of what is committed, with the packages of this one."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(REPOSITORY), str(clone)], check=True)
    (clone / ".venv").symlink_to(REPOSITORY / ".venv")
    done = subprocess.run(
        [sys.executable, str(clone / "ma"), "release", str(folder / "dist")],
        env={**os.environ, "MA_DATA": str(folder / "data"), **environ},
        umask=umask, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist"


@pytest.fixture(scope="module")
def dist(child_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("one"), 0o022)


def test_another_folder_umask_and_clock_build_the_same(dist: Path, tmp_path: Path) -> None:
    other = built(tmp_path / "far" / "away", 0o077, SOURCE_DATE_EPOCH="86400", TZ="Asia/Tokyo")
    names = sorted(path.name for path in dist.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    own = [name for name in names if name.startswith(OURS)]
    assert len(own) == 2 + 3 * 3 + 2
    for name in own:
        assert (dist / name).read_bytes() == (other / name).read_bytes(), name


def test_the_wheels_hold_what_is_run_and_nothing_else(dist: Path) -> None:
    version = release.version()
    kma = set(zipfile.ZipFile(dist / f"ma_kma-{version}-py3-none-any.whl").namelist())
    server = set(zipfile.ZipFile(dist / f"ma_server-{version}-py3-none-any.whl").namelist())
    assert {"kma/py.typed", "kma/agent.py", "broker/port.py", "contract/__init__.py"} <= kma
    assert {"manage.py", "Procfile", "ma_site/settings.py", "static/ma/theme.css"} <= server
    assert any(name.startswith("agents/migrations/0001") for name in server)
    assert "locale/ru/LC_MESSAGES/django.mo" in server and "deploy/services/templates/broker.xml" in server
    tops = {name.partition("/")[0] for name in kma | server if ".dist-info" not in name}
    assert not tops & {"tests", "bench", "handbook", "docs", "packaging", ".ci"}
    assert not [name for name in kma | server if name.endswith(".pyc") or "/var/" in name]
    assert not kma & server


def test_lock_bill_and_licences_name_every_package_with_its_hash(dist: Path) -> None:
    for name, least in (("ma-kma", 20), ("ma-server", 40), ("ma-server-pipeline", 3)):
        lines = (dist / f"{name}.lock.txt").read_text().splitlines()
        locked = [found for line in lines if not line.startswith("ma-") for found in LOCKED.findall(line)]
        bill = json.loads((dist / f"{name}.cdx.json").read_text())
        assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["name"] == name
        parts = {(each["name"], each["version"], each["hashes"][0]["content"]) for each in bill["components"]}
        assert parts == set(locked) and len(locked) >= least
        assert len((dist / f"{name}.licences.txt").read_text().splitlines()) == len(locked)
        assert "unknown" not in (dist / f"{name}.licences.txt").read_text()


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True), ("BSD-3-Clause", True), ("GNU Lesser General Public License v3 (LGPLv3)", True),
        ("GNU General Public License v3 (GPLv3)", False), ("Proprietary, limited", False), ("unknown", False),
    ],
)  # fmt: skip
def test_what_may_be_shipped_with_the_product(licence: str, allowed: bool) -> None:
    assert release_papers.is_allowed(licence) is allowed


# -- installed -----------------------------------------------------------------------------------------------


def venv(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder / "bin"


def bare(**environ: str) -> dict[str, str]:
    """Of a machine that knows nothing of a clone."""
    return {"PATH": os.defpath, "HOME": "/nowhere", "LANG": "C.UTF-8", **environ}


def install(programs: Path, dist: Path, name: str) -> None:
    """Nothing but what the lock names, by its hash, from the folder."""
    pip = [programs / "pip", "install", "-q", "--no-index", "--find-links", dist, "--require-hashes"]
    command = [*map(str, pip), "-r", str(dist / f"{name}.lock.txt")]
    subprocess.run(command, check=True, cwd=dist, env=bare())


def test_a_wheel_that_was_changed_is_not_installed(dist: Path, tmp_path: Path) -> None:
    changed = shutil.copytree(dist, tmp_path / "dist")
    (wheel,) = changed.glob("ma_kma-*.whl")
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    with pytest.raises(subprocess.CalledProcessError):
        install(venv(tmp_path / "venv"), changed, "ma-kma")


def test_what_proton_needs_of_a_host_is_named(dist: Path) -> None:
    said = (dist / "python-qpid-proton.needs.txt").read_text()
    assert re.search(r"^glibc: 2\.\d+ or newer$", said, re.MULTILINE), said
    assert "OpenSSL: libcrypto.so." in said and "libssl.so." in said


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("class SSL:\n    present = staticmethod(lambda: False)\n", "was built without OpenSSL"),
        ("raise ImportError('no libssl.so.3')\n", "cannot be imported.*no libssl.so.3"),
        (None, "cannot be imported"),
    ],
)
def test_a_wheel_without_tls_is_no_release(program: str | None, problem: str, tmp_path: Path) -> None:
    """Nothing in the wheel: then the one of this environment answers, which does not count."""
    if program is not None:
        (tmp_path / "proton").mkdir()
        (tmp_path / "proton" / "__init__.py").write_text(program)
    with pytest.raises(DeployError, match=f"(?s){problem}"):
        check_tls(tmp_path)


@pytest.mark.parametrize(
    ("binary", "needs"),
    [
        (b"\0GLIBC_2.9\0GLIBC_2.34\0libssl.so.3\0", ["glibc: 2.34 or newer", "OpenSSL: libssl.so.3"]),
        (b"GLIBC_PRIVATE", ["glibc: any", "OpenSSL: none"]),
    ],
)  # fmt: skip
def test_needs_are_read_of_the_symbols(binary: bytes, needs: list[str]) -> None:
    assert needs_of("x.whl", binary).splitlines() == ["wheel: x.whl", *needs]


def test_a_kma_is_installed_into_an_empty_environment_without_an_index(dist: Path, tmp_path: Path) -> None:
    programs = venv(tmp_path / "venv")
    install(programs, dist, "ma-kma")
    said = subprocess.check_output([programs / "kma", "--version"], cwd=tmp_path, env=bare(), text=True)
    assert said.strip() == release.version()

    three = bare(
        MA_URL="http://127.0.0.1:1", KMA_TOKEN="none", KMA_AMQP_URL="amqp://kma:none@127.0.0.1:1",
        STATE_DIRECTORY=str(tmp_path / "state"),
    )  # fmt: skip
    log = tmp_path / "kma.log"
    with log.open("wb") as out:
        process = subprocess.Popen([programs / "kma"], cwd=tmp_path, env=three, stdout=out, stderr=out)
    try:
        until(lambda: b"does not answer" in log.read_bytes() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        assert (tmp_path / "state" / "spool.sqlite3").exists() or list((tmp_path / "state").iterdir())
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
def server(dist: Path, tmp_path: Path) -> Iterator[Path]:
    """The programs of an environment that was empty."""
    programs = venv(tmp_path / "venv")
    install(programs, dist, "ma-server")
    yield programs


def test_a_site_is_installed_migrated_and_served(server: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    data = tmp_path / "data"
    data.mkdir()
    file = tmp_path / "ma.env"
    known = {name: value for name, value in environment.values(data).items() if name.startswith("MA_")}
    known |= {"MA_PORT": str(port), "MA_ALLOWED_HOSTS": "127.0.0.1"}
    file.write_text("# of this site\n" + "".join(f'{name}="{value}"\n' for name, value in known.items()))
    environ = bare(MA_ENV_FILE=str(file))

    def ma(*arguments: str) -> str:
        done = subprocess.run(
            [server / "ma", *arguments], cwd=tmp_path, env=environ, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert ma("--version").strip() == release.version()
    ma("migrate")
    ma("manage", "collectstatic", "--noinput")
    assert ma("create-server", "srv-9").strip()
    log = tmp_path / "web.log"
    with log.open("wb") as out:
        process = subprocess.Popen([server / "ma", "web"], cwd=tmp_path, env=environ, stdout=out, stderr=out)

    def served() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return requests.get(f"http://127.0.0.1:{port}/login/", timeout=5).ok
        except requests.RequestException:
            return False

    try:
        until(served)
        page = requests.get(f"http://127.0.0.1:{port}/login/", timeout=5).text
        (style,) = re.findall(r'href="(/static/ma/theme[^"]*)"', page)
        assert requests.get(f"http://127.0.0.1:{port}{style}", timeout=5).ok
    finally:
        process.terminate()
        process.wait(60)


def test_a_file_of_variables_is_read_as_a_service_manager_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "ma.env"
    file.write_text("# a comment\n; another\n\nA=1\n B = x \nC=\"a b\"\nD='#x'\n")
    with pytest.raises(Exception, match=r"line 5: not NAME=value"):
        read_variables(file)
    file.write_text("# a comment\n; another\n\nA=1\nC=\"a b\"\nD='#x'\nE=\n")
    assert read_variables(file) == {"A": "1", "C": "a b", "D": "#x", "E": ""}
    with pytest.raises(Exception, match="cannot be read"):
        read_variables(tmp_path / "none")
