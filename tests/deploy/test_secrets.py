import stat
from pathlib import Path

import pytest

from deploy import config as configuration
from deploy import secret_files
from deploy.config import Config
from deploy.console import DeployError
from deploy.layout import Layout


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configuration.read({"MA_DATA": str(tmp_path / "data")})


@pytest.fixture
def layout(config: Config) -> Layout:
    layout = Layout(config.data)
    layout.make_folders()
    return layout


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_for_their_owner_only(config: Config, layout: Layout) -> None:
    secret_files.ensure_all(config, layout)
    files = {path.name: mode(path) for path in layout.secrets.iterdir()}
    assert files == dict.fromkeys(
        ("django_key", "metrics_token", "broker_kma", "broker_publisher", "broker_ops", "redis_url"), 0o600
    )
    assert mode(layout.secrets) == 0o700


def test_secrets_are_written_once(config: Config, layout: Layout) -> None:
    secret_files.ensure_all(config, layout)
    before = {path.name: path.read_text() for path in layout.secrets.iterdir()}
    secret_files.ensure_all(config, layout)
    assert {path.name: path.read_text() for path in layout.secrets.iterdir()} == before


def test_every_secret_is_another_one_of_256_bits(config: Config, layout: Layout) -> None:
    secret_files.ensure_all(config, layout)
    passwords = secret_files.broker_passwords(layout)
    assert set(passwords) == {"kma", "publisher", "ma-ops"}
    assert len({*passwords.values(), secret_files.read_secret(layout.secrets / "django_key")}) == 4
    assert all(len(password) == 43 for password in passwords.values())


def test_rights_that_were_opened_are_closed_again(tmp_path: Path) -> None:
    path = tmp_path / "secrets" / "one"
    secret_files.ensure_secret(path)
    path.chmod(0o644)
    secret_files.ensure_secret(path)
    assert mode(path) == 0o600


def test_another_redis_port_keeps_the_password(tmp_path: Path) -> None:
    path = tmp_path / "secrets" / "redis_url"
    first = secret_files.ensure_redis_url(path, 6379)
    second = secret_files.ensure_redis_url(path, 6400)
    assert second == first.replace(":6379/", ":6400/")
    assert secret_files.read_secret(path) == second


def test_a_missing_secret_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="is missing: ./ma up creates it"):
        secret_files.read_secret(tmp_path / "none")
