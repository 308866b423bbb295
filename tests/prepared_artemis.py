"""Artemis as tests start it: `artemis create` ran once for all of them, and an earlier broker has read the
classes."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from deploy.services import artemis
from deploy.services.artemis import BrokerPorts, BrokerTls

# Stands in the kept files for the folder of an instance.
INSTANCE = "@INSTANCE@"


def create_instance(
    distribution: Path,
    folder: Path,
    ports: BrokerPorts,
    passwords: Mapping[str, str],
    tls: BrokerTls | None = None,
) -> None:
    """As deploy.services.artemis does, without the JVM of `artemis create`."""
    kept = distribution.parent / f"instance-{_key(Path(artemis.__file__).read_bytes(), distribution)}"
    if not kept.exists():
        _keep(distribution, kept)
    shutil.copytree(kept, folder)
    _replace(folder, INSTANCE, str(folder))
    artemis.create_instance(distribution, folder, ports, passwords, tls)


def _keep(distribution: Path, kept: Path) -> None:
    """Aside and renamed: sessions that begin at the same time do the same, and the first one wins."""
    aside = kept.with_name(f"{kept.name}.{os.getpid()}").resolve()
    artemis.create_instance(distribution, aside, BrokerPorts(1, 2, 3), {})
    _replace(aside, str(aside), INSTANCE)
    try:
        aside.rename(kept)
    except OSError:
        shutil.rmtree(aside)


def _replace(folder: Path, before: str, after: str) -> None:
    for file in _texts(folder):
        file.write_text(file.read_text("utf-8").replace(before, after), "utf-8")


def _texts(folder: Path) -> Iterator[Path]:
    yield from (file for part in ("bin", "etc") for file in (folder / part).iterdir() if file.is_file())


class Classes:
    """Those of the broker as the JVM has parsed and verified them, kept in an archive of its own format.

    The JVM takes only what its own class loader reads: so all jars are in its class path, before those of the
    boot loader. It does without an archive that does not fit.
    """

    def __init__(self, distribution: Path, folder: Path) -> None:
        java = Path(shutil.which("java") or "java").resolve()
        self._jars = ":".join(map(str, sorted((distribution / "lib").glob("*.jar"))))
        self._kept = (
            distribution.parent
            / f"classes-{_key(str(java.stat().st_mtime_ns).encode(), java, distribution)}.jsa"
        )
        self._made = folder / "tmp" / "classes.jsa"

    def profile(self, *, record: bool) -> str:
        """Lines for the profile of an instance. `record`: it makes the archive at its end, if there is none
        yet."""
        archive = f" -XX:SharedArchiveFile={self._kept}" if self._kept.exists() else ""
        if not archive and record:
            archive = f" -XX:ArchiveClassesAtExit={self._made}"
        return (
            # A start is half as dear, and no broker of tests lives long enough to gain by the second
            # compiler.
            f'\nJAVA_ARGS="$JAVA_ARGS {artemis.ONE_COMPILER}"\n'
            f'JAVA_ARGS_APPEND="$JAVA_ARGS_APPEND -cp {self._jars}{archive} '
            '-Xlog:cds=off -Xlog:cds+dynamic=off"\n'
        )

    def keep(self) -> None:
        """After the end of an instance."""
        if self._made.exists():
            aside = self._kept.with_suffix(f".{os.getpid()}")
            shutil.move(self._made, aside)
            aside.replace(self._kept)


def _key(content: bytes, *paths: Path) -> str:
    return hashlib.sha256(b"\0".join([content, *(bytes(path) for path in paths)])).hexdigest()[:16]
