from pathlib import Path

import pytest

from deploy.console import DeployError
from deploy.installing import artemis_download


def test_an_archive_that_is_not_the_published_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "apache-artemis.tar.gz"
    fake.write_bytes(b"not it")
    monkeypatch.setattr(artemis_download, "archive", lambda: fake)
    with pytest.raises(DeployError, match="is not Artemis .* as published"):
        artemis_download.ensure_unpacked(tmp_path / "data", tmp_path / "log")
    assert not artemis_download.unpacked_in(tmp_path / "data").exists()


def test_an_unpacked_distribution_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artemis_download.unpacked_in(tmp_path).mkdir()
    monkeypatch.setenv("PATH", "")
    assert artemis_download.ensure_unpacked(tmp_path, tmp_path / "log") == artemis_download.unpacked_in(
        tmp_path
    )
