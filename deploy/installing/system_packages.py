"""Programs and headers that come from the system's package manager."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from deploy.console import DeployError, run_logged
from deploy.installing import artemis_download
from deploy.services import postgres

OLDEST_JAVA = 17
INSTALLER = Path(__file__).with_name("apt-install.sh")


@dataclass(frozen=True)
class Need:
    what: str
    packages: tuple[str, ...]  # Debian's names; the first that is known to apt is taken
    found: Callable[[], bool]


def needs_of_start(*, broker: bool, virtual_environment: bool) -> tuple[Need, ...]:
    """Whether the broker has still to be unpacked, and Python packages to be installed."""
    needs = [
        Need(
            f"a Java {OLDEST_JAVA} runtime", ("openjdk-17-jre-headless", "default-jre-headless"), _java_found
        ),
        Need("Redis server", ("redis-server",), lambda: _program("redis-server")),
    ]
    if broker and not artemis_download.archive().exists():
        needs.append(Need("Maven", ("maven",), lambda: _program("mvn")))
    if virtual_environment:
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        needs += [
            Need("Python's venv module", (f"{python}-venv", "python3-venv"), _venv_found),
            Need("a C compiler", ("gcc",), lambda: _program("gcc")),
            Need("the C library's headers", ("libc6-dev",), lambda: Path("/usr/include/stdio.h").exists()),
            Need("Python's headers", (f"{python}-dev", "python3-dev"), _python_headers_found),
            Need("OpenSSL's headers", ("libssl-dev",), lambda: Path("/usr/include/openssl/ssl.h").exists()),
            Need("pkg-config", ("pkg-config",), lambda: _program("pkg-config")),
        ]
    return tuple(needs)


def needs_of_tests() -> tuple[Need, ...]:
    return (
        Need("PostgreSQL", ("postgresql",), lambda: postgres.programs() is not None),
        Need(
            "a Java compiler", ("openjdk-17-jdk-headless", "default-jdk-headless"), lambda: _program("javac")
        ),
        Need("openssl", ("openssl",), lambda: _program("openssl")),
        Need("gettext", ("gettext",), lambda: _program("msgfmt")),
        Need("Prometheus", ("prometheus",), lambda: _program("prometheus") and _program("promtool")),
        Need("Chromium", ("chromium", "chromium-browser"), _chromium_found),
        Need("Alertmanager", ("prometheus-alertmanager",), lambda: _program("prometheus-alertmanager")),
        Need("systemd-analyze", ("systemd",), lambda: _program("systemd-analyze")),
        Need("debootstrap", ("debootstrap",), lambda: _program("debootstrap")),
        Need("buildah", ("buildah",), lambda: _program("buildah")),
        Need("iproute2", ("iproute2",), lambda: _program("ip")),
        Need("Dropwizard metrics", ("libdropwizard-metrics-java",), _java_library("metrics-core")),
        Need("Snappy for Java", ("libsnappy-java",), _java_library("snappy-java")),
        Need("ChromeDriver", ("chromium-driver", "chromium-chromedriver"), lambda: _program("chromedriver")),
    )


def ensure_installed(needs: tuple[Need, ...], log: Path, say: Callable[[str], None]) -> None:
    missing = [need for need in needs if not need.found()]
    if not missing:
        return
    packages = [_package(need) for need in missing]
    root = _as_root()
    if root is None:
        raise DeployError(_message(missing, packages))
    say(f"installing {', '.join(packages)}")
    run_logged([*root, "/bin/sh", INSTALLER, *packages], what="apt-get install", log=log)
    still = [need for need in missing if not need.found()]
    if still:
        raise DeployError(_message(still, [_package(need) for need in still]))


def _message(missing: list[Need], packages: list[str]) -> str:
    names = ", ".join(need.what for need in missing)
    return f"This machine lacks {names}. On Debian: sudo apt-get install {' '.join(packages)}"


def _as_root() -> list[str] | None:
    """How to run apt-get without asking anybody; None where that is not allowed here."""
    if not _program("apt-get"):
        return None
    if os.getuid() == 0:
        return []
    if (
        _program("sudo")
        and subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    ):
        return ["sudo", "-n"]
    return None


def _package(need: Need) -> str:
    if len(need.packages) > 1 and _program("apt-cache"):
        for package in need.packages:
            shown = subprocess.run(
                ["apt-cache", "policy", package], capture_output=True, text=True, check=False
            )
            if re.search(r"Candidate: \d", shown.stdout):
                return package
    return need.packages[0]


def _program(name: str) -> bool:
    return shutil.which(name) is not None


def _java_library(name: str) -> Callable[[], bool]:
    """Of Debian: what a server of ZooKeeper needs beside the jars of Artemis."""
    return Path(f"/usr/share/java/{name}.jar").exists


def _chromium_found() -> bool:
    return _program("chromium") or _program("chromium-browser")


def _java_found() -> bool:
    if not _program("java"):
        return False
    shown = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', shown.stderr + shown.stdout)
    return version is not None and int(version[1]) >= OLDEST_JAVA


def _venv_found() -> bool:
    return find_spec("ensurepip") is not None


def _python_headers_found() -> bool:
    return (Path(sysconfig.get_paths()["include"]) / "Python.h").exists()
