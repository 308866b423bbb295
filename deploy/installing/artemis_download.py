"""Apache Artemis, and the JDBC drivers by which the pipeline reads the MA's database: from Maven Central,
checked against pinned checksums, Artemis unpacked."""

import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from deploy.console import DeployError, run_logged

VERSION = "2.56.0"
SHA512 = (
    "441ad38aa1b0526e5709edf43542039f016669d24134056613e4cbafdf6b101e"
    "5351f79f7ee190b43fc8031f6ec596a5fd075490dcee4d3eb3a88d8ed2cfc01b"
)
ARTIFACT = f"org.apache.artemis:apache-artemis:{VERSION}:tar.gz:bin"


def local_repository() -> Path:
    return Path.home() / ".m2" / "repository"


def archive() -> Path:
    name = f"apache-artemis-{VERSION}-bin.tar.gz"
    return local_repository() / "org/apache/artemis/apache-artemis" / VERSION / name


def unpacked_in(folder: Path) -> Path:
    return folder / f"artemis-{VERSION}"


def ensure_unpacked(folder: Path, log: Path) -> Path:
    """The unpacked distribution under `folder`; downloads only where it is on this machine nowhere yet."""
    distribution = unpacked_in(folder)
    if not distribution.exists():
        fetch(log)
        _verify(archive())
        _unpack(archive(), distribution)
    return distribution


def fetch(log: Path) -> None:
    """Downloads it where it is not on this machine yet."""
    if not archive().exists():
        _download(log)


def _download(log: Path) -> None:
    command = ["mvn", "-B", "-q", f"-Dmaven.repo.local={local_repository()}"]
    command += ["dependency:get", f"-Dartifact={ARTIFACT}", "-Dtransitive=false"]
    run_logged(command, what=f"The download of Artemis {VERSION} from Maven Central", log=log)


def _verify(path: Path) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha512").hexdigest()
    if found != SHA512:
        raise DeployError(
            f"{path} is not Artemis {VERSION} as published: SHA-512 {found[:16]}…; delete it and try again"
        )


def _unpack(path: Path, target: Path) -> None:
    """Unpacks aside and renames, so that an interrupted start leaves no half distribution."""
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".artemis-", dir=target.parent))
    try:
        subprocess.run(["tar", "-xzf", str(path), "-C", str(aside)], check=True)
        try:
            (aside / f"apache-artemis-{VERSION}").rename(target)
        except OSError:
            if not target.exists():  # otherwise another start was faster, with the same verified archive
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Driver:
    group: str
    artifact: str
    version: str
    sha512: str

    @property
    def jar(self) -> Path:
        folder = local_repository().joinpath(*self.group.split("."), self.artifact, self.version)
        return folder / f"{self.artifact}-{self.version}.jar"


DRIVERS = (
    Driver(
        "org.postgresql",
        "postgresql",
        "42.7.8",
        "3ec6f2186ad9f2cbd7916cc1749b61433137c78c13e13b7583507051733318423505fa61908242f4d02e0d90f7db6eecdb6d573a9667"
        "73d274bf2c78d976573b",
    ),
    Driver(
        "org.xerial",
        "sqlite-jdbc",
        "3.50.3.0",
        "9c39bbe5071a9453c22d2c99a59eae717592f5da9f41b0f6d6f5ad604a48c6a8d15c59d3b31d6d1822450d8f482d3b804120175ebc21"
        "23348963342ba0ac23e5",
    ),
)


def jars() -> tuple[Path, ...]:
    """Where they are once they were fetched."""
    return tuple(driver.jar for driver in DRIVERS)


def fetched() -> bool:
    return all(jar.exists() for jar in jars())


def ensure_fetched(log: Path) -> tuple[Path, ...]:
    """Downloads what is not on this machine yet."""
    for driver in DRIVERS:
        if not driver.jar.exists():
            _download_driver(driver, log)
        _verify_driver(driver)
    return jars()


def _download_driver(driver: Driver, log: Path) -> None:
    command = ["mvn", "-B", "-q", f"-Dmaven.repo.local={local_repository()}", "dependency:get"]
    command += [f"-Dartifact={driver.group}:{driver.artifact}:{driver.version}", "-Dtransitive=false"]
    run_logged(
        command, what=f"The download of {driver.artifact} {driver.version} from Maven Central", log=log
    )


def _verify_driver(driver: Driver) -> None:
    with driver.jar.open("rb") as file:
        found = hashlib.file_digest(file, "sha512").hexdigest()
    if found != driver.sha512:
        name = f"{driver.artifact} {driver.version}"
        raise DeployError(
            f"{driver.jar} is not {name} as published: SHA-512 {found[:16]}…; delete it and try again"
        )
