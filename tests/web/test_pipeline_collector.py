"""The JVM's collector: ours, unless somebody has chosen another one, for a JVM that is told of two does not
start."""

from pathlib import Path
from typing import Any

import pytest

from insights.models import PipelineRun
from insights.runs.folder import RunFolder
from insights.runs.spark import _configuration

pytestmark = pytest.mark.both_databases

OURS = ("spark.driver.defaultJavaOptions", "-XX:+UseParallelGC")


def options(master: str = "local[2]") -> list[tuple[str, str]]:
    return _configuration(RunFolder(PipelineRun()), master)


def test_the_parallel_one_unless_another_was_chosen(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    settings.MA_PIPELINE_PROPERTIES = ""
    assert OURS in options() and OURS not in options("spark://one:7077")

    for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "-Xss2m -XX:+UseSerialGC")
            assert OURS not in options()
    properties = tmp_path / "spark.properties"
    settings.MA_PIPELINE_PROPERTIES = str(properties)
    assert OURS in options()
    properties.write_text("spark.driver.extraJavaOptions  -XX:+UseG1GC\n")
    assert OURS not in options()
