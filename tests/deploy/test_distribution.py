from pathlib import Path

import pytest

from deploy import distribution
from deploy.problem import Problem


def test_an_archive_that_is_not_the_published_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "apache-artemis.tar.gz"
    fake.write_bytes(b"not it")
    monkeypatch.setattr(distribution, "archive", lambda: fake)
    with pytest.raises(Problem, match="is not Artemis .* as published"):
        distribution.ensure(tmp_path / "data", tmp_path / "log")
    assert not distribution.unpacked_in(tmp_path / "data").exists()


def test_an_unpacked_distribution_is_not_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution.unpacked_in(tmp_path).mkdir()
    monkeypatch.setenv("PATH", "")
    assert distribution.ensure(tmp_path, tmp_path / "log") == distribution.unpacked_in(tmp_path)
