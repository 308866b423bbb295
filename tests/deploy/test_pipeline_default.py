"""The archive that nobody named: under the data folder, where the machine is large enough."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import config as configuration
from deploy import environment, last_start
from deploy.commands import up
from deploy.config import Config
from deploy.console import DeployError
from deploy.installing.artemis_download import unpacked_in
from deploy.layout import Layout
from deploy.services.ports import free_ports
from tests.services import artemis_distribution

PORTS = ("MA_PORT", "MA_AMQP_PORT", "MA_STOMP_PORT", "MA_CORE_PORT", "MA_REDIS_PORT")


def config_of(data: Path, **environ: str) -> Config:
    return configuration.read({"MA_DATA": str(data), **environ})


@pytest.fixture
def large_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from deploy import pipeline_default

    monkeypatch.setattr(pipeline_default, "_memory_mb", lambda: 16_000)
    monkeypatch.setattr(pipeline_default, "FREE_DISK_MB", 1)
    yield


def told(config: Config) -> dict[str, str]:
    site = environment.site(config, Layout(config.data))
    return {name: site[name] for name in ("MA_ARCHIVE_URL", "MA_PIPELINE") if name in site}


@pytest.mark.process
def test_a_new_installation_has_an_archive(tmp_path: Path) -> None:
    """As `./ma up` makes it, on this machine, which runs the tests of the pipeline."""
    data = tmp_path / "a folder"
    layout = Layout(data)
    layout.make_folders()
    unpacked_in(data).symlink_to(artemis_distribution())
    config = config_of(
        data, **dict(zip(PORTS, map(str, free_ports(5)), strict=True)), MA_PIPELINE_MEMORY_MB="1024"
    )
    up.configure(config, layout)
    url = environment.site(config, layout).get("MA_ARCHIVE_URL", "")
    assert url == f"file://{tmp_path}/a%20folder/archive", "Insights stays empty until somebody names one"


def decided(data: Path, **environ: str) -> dict[str, str]:
    from deploy import pipeline_default

    config = config_of(data, **environ)
    Layout(data).make_folders()
    pipeline_default.decide(config, Layout(data))
    return told(config)


def test_it_is_decided_once(tmp_path: Path, large_machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from deploy import pipeline_default

    on = {"MA_ARCHIVE_URL": f"file://{tmp_path}/archive", "MA_PIPELINE": "default"}
    assert decided(tmp_path) == on
    monkeypatch.setattr(pipeline_default, "_memory_mb", lambda: 500)
    assert decided(tmp_path) == on


def test_one_variable_switches_it_off(tmp_path: Path, large_machine: None) -> None:
    assert decided(tmp_path, MA_PIPELINE="off") == {"MA_PIPELINE": "off"}
    assert not (tmp_path / "archive").exists()
    decided(tmp_path)
    assert decided(tmp_path, MA_PIPELINE="off") == {"MA_PIPELINE": "off"}
    with pytest.raises(DeployError, match="MA_PIPELINE='default': use off, or unset it"):
        config_of(tmp_path, MA_PIPELINE="default")


def test_one_that_a_person_named_stays(tmp_path: Path, large_machine: None) -> None:
    assert decided(tmp_path, MA_ARCHIVE_URL="s3a://mine") == {"MA_ARCHIVE_URL": "s3a://mine"}
    assert not (tmp_path / "archive").exists()


def test_a_machine_that_is_too_small_has_none_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deploy import pipeline_default

    monkeypatch.setattr(pipeline_default, "_memory_mb", lambda: 7095)
    assert decided(tmp_path) == {"MA_PIPELINE": "little-memory"}
    monkeypatch.setattr(pipeline_default, "_memory_mb", lambda: 7096)
    monkeypatch.setattr(
        pipeline_default, "FREE_DISK_MB", shutil.disk_usage(tmp_path).total // pipeline_default.MB + 1
    )
    assert decided(tmp_path) == {"MA_PIPELINE": "little-disk"}
    assert not (tmp_path / "archive").exists()


def test_to_name_another_one_beside_it_is_another_environment(tmp_path: Path, large_machine: None) -> None:
    decided(tmp_path)
    last_start.keep(config_of(tmp_path), Layout(tmp_path))
    shell = {"MA_DATA": str(tmp_path)}
    last_start.config_for_start(shell, last_start.Choice.REFUSE)
    with pytest.raises(DeployError, match="MA_ARCHIVE_URL: file://.*/archive, now s3a://mine"):
        last_start.config_for_start(shell | {"MA_ARCHIVE_URL": "s3a://mine"}, last_start.Choice.REFUSE)
