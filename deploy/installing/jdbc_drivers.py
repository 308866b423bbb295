"""JDBC drivers from Maven Central, by which the pipeline reads the MA's database; checked against pinned
checksums."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from deploy.console import DeployError, run_logged
from deploy.installing.artemis_download import local_repository


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
            _download(driver, log)
        _verify(driver)
    return jars()


def _download(driver: Driver, log: Path) -> None:
    command = ["mvn", "-B", "-q", f"-Dmaven.repo.local={local_repository()}", "dependency:get"]
    command += [f"-Dartifact={driver.group}:{driver.artifact}:{driver.version}", "-Dtransitive=false"]
    run_logged(
        command, what=f"The download of {driver.artifact} {driver.version} from Maven Central", log=log
    )


def _verify(driver: Driver) -> None:
    with driver.jar.open("rb") as file:
        found = hashlib.file_digest(file, "sha512").hexdigest()
    if found != driver.sha512:
        name = f"{driver.artifact} {driver.version}"
        raise DeployError(
            f"{driver.jar} is not {name} as published: SHA-512 {found[:16]}…; delete it and try again"
        )
