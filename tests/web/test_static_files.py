"""Static files of the site: collected when one has changed or is missing, and left alone otherwise."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import OutputWrapper

from ma_site.management.commands import prepare


@pytest.fixture
def sources(settings: Any, tmp_path: Path) -> Path:
    """The one folder with files of this site."""
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "site.css").write_text("body { color: black }")
    settings.STATICFILES_DIRS = [sources]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    manifest = {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": manifest}
    settings.STATIC_ROOT = tmp_path / "collected"
    return sources


def collect() -> bool:
    """Whether anything had to be done."""
    out = StringIO()
    prepare.collect(OutputWrapper(out))
    return bool(out.getvalue())


def served(sources: Path) -> Path:
    root = sources.parent / "collected"
    name: str = json.loads((root / "staticfiles.json").read_text())["paths"]["site.css"]
    return root / name


def test_files_are_collected_once(sources: Path) -> None:
    assert collect()
    assert served(sources).read_text() == "body { color: black }"
    assert not collect()


def test_a_changed_file_is_collected_again(sources: Path) -> None:
    collect()
    (sources / "site.css").write_text("body { color: white }")
    assert collect()
    assert served(sources).read_text() == "body { color: white }"


def test_a_file_that_is_missing_is_made_again(sources: Path) -> None:
    collect()
    served(sources).unlink()
    assert collect()
    assert served(sources).exists()


def test_a_collection_that_was_interrupted_begins_again(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect()
    (sources / "site.css").write_text("body { color: white }")
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(prepare, "call_command", _interrupted)
        collect()
    (sources / "site.css").write_text("body { color: black }")
    assert collect(), "nobody knows how far it had come"


def _interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt
