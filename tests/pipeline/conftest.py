"""One Spark session for all tests of the pipeline: local, one core, one shuffle partition."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deploy.installing import artemis_download
from tests.pipeline import classes
from tests.services import cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


@pytest.fixture(scope="session")
def jars() -> str:
    """The JDBC drivers, as spark.jars names them."""
    return ",".join(map(str, artemis_download.ensure_fetched(cache() / "log" / "install.log")))


@pytest.fixture(scope="session")
def session(
    child_processes: None, jars: str, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[SparkSession]":
    from pipeline.session import JAVA_UTC, build

    made = tmp_path_factory.mktemp("classes") / "made.jsa"
    of_tests = {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.jars": jars,
        "spark.driver.extraJavaOptions": f"{JAVA_UTC} {classes.recording(made)}",
    }
    session = build("local[1]", name="tests", memory="1g", settings={**SETTINGS, **of_tests})
    session.sparkContext.setLogLevel("ERROR")
    gateway = session.sparkContext._gateway
    assert gateway is not None
    yield session
    session.stop()
    classes.keep(made, gateway.proc)


@pytest.fixture
def archive_url(tmp_path: Path) -> str:
    return str(tmp_path / "archive")
