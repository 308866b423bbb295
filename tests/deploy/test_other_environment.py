"""./ma up in a data folder that was started with another environment: one word of the shell more or less must
not begin an empty site beside the one that is there."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import config as configuration
from deploy import last_start
from deploy.config import REPOSITORY
from deploy.layout import Layout
from deploy.services.ports import free_ports

pytestmark = pytest.mark.process

NAMES = ("MA_PORT", "MA_AMQP_PORT", "MA_STOMP_PORT", "MA_CORE_PORT", "MA_REDIS_PORT")
DATABASE = "postgresql://ma:first-secret@db.example.org:5432/ma"
ARCHIVE = "file:///srv/archive"


class Installation:
    """A data folder that was started once. One of its ports is taken, so a start that is not refused ends
    there."""

    def __init__(self, data: Path, taken: int) -> None:
        self.data = data
        self.shell = {"MA_DATA": str(data)} | dict(zip(NAMES, map(str, (taken, *free_ports(4))), strict=True))

    def started_with(self, **environ: str) -> None:
        layout = Layout(self.data)
        layout.make_folders()
        last_start.keep(configuration.read(self.shell | environ), layout)

    def up(self, *arguments: str, limit: str = "true", **environ: str) -> str:
        """What it says; it is always refused, for one reason or the other. `limit`: what the shell does
        before."""
        command = [
            "sh",
            "-c",
            f'{limit}; exec "$0" "$@"',
            sys.executable,
            str(REPOSITORY / "ma"),
            "up",
            "--detach",
        ]
        done = subprocess.run(
            [*command, *arguments],
            env={"PATH": os.environ["PATH"]} | self.shell | environ, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 1, done
        return done.stderr


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        yield Installation(tmp_path / "data", taken.getsockname()[1])


def test_a_shell_without_the_database_of_the_last_start_begins_no_empty_site(
    installation: Installation,
) -> None:
    installation.started_with(MA_DATABASE_URL=DATABASE)
    said = installation.up()
    assert "MA_DATABASE_URL: postgresql://db.example.org:5432/ma, now not set" in said
    assert "./ma up --remembered" in said and "./ma up --changed" in said
    assert "in use" not in said


def test_another_database_is_refused_and_no_password_is_shown(installation: Installation) -> None:
    installation.started_with(MA_DATABASE_URL=DATABASE)
    said = installation.up(MA_DATABASE_URL="postgresql://ma:second-secret@db.example.org:5432/other")
    assert "now postgresql://db.example.org:5432/other" in said
    assert "secret" not in said


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_a_file_that_names_no_database_is_refused_before_anything_starts(
    content: str | None, installation: Installation, tmp_path: Path
) -> None:
    file = tmp_path / "database_url"
    if content is not None:
        file.write_text(content)
    said = installation.up(MA_DATABASE_URL_FILE=str(file))
    assert f"MA_DATABASE_URL_FILE={file} cannot be used" in said and "Traceback" not in said
    assert not installation.data.exists()


def test_too_few_open_files_are_refused_or_raised_before_anything_starts(installation: Installation) -> None:
    said = installation.up(limit="ulimit -n 64")
    assert "the limit of open files is 64" in said and "limits.conf" in said
    assert not installation.data.exists()
    assert "in use" in installation.up(limit="ulimit -Sn 64"), "raised, so only the port is in the way"


def test_another_port_is_refused(installation: Installation) -> None:
    installation.started_with()
    (port,) = free_ports(1)
    assert f"MA_AMQP_PORT: {installation.shell['MA_AMQP_PORT']}, now {port}" in installation.up(
        MA_AMQP_PORT=str(port)
    )


def test_another_archive_or_dead_letter_address_is_refused(installation: Installation) -> None:
    installation.started_with(MA_ARCHIVE_URL=ARCHIVE, MA_DLA_ADDRESS="MY.DLA")
    said = installation.up()
    assert f"MA_ARCHIVE_URL: {ARCHIVE}, now not set" in said
    assert "MA_DLA_ADDRESS: MY.DLA, now not set" in said


def test_the_same_database_with_a_new_password_is_no_other(installation: Installation) -> None:
    installation.started_with(MA_DATABASE_URL=DATABASE, MA_LOG_LEVEL="DEBUG")
    said = installation.up(MA_DATABASE_URL=DATABASE.replace("first", "second") + "?sslmode=require")
    assert "is in use" in said and "another environment" not in said


def test_an_archive_may_be_named_later(installation: Installation) -> None:
    installation.started_with()
    assert "is in use" in installation.up(MA_ARCHIVE_URL=ARCHIVE)


def test_a_person_chooses_between_the_two(installation: Installation) -> None:
    installation.started_with(MA_DATABASE_URL=DATABASE)
    for choice in ("--remembered", "--changed"):
        assert "is in use" in installation.up(choice)


def test_the_remembered_one_wins_where_the_shell_says_otherwise(installation: Installation) -> None:
    installation.started_with(MA_DATABASE_URL=DATABASE, MA_SERVERS="a,b")
    shell = installation.shell | {
        "MA_DATABASE_URL": "sqlite:////tmp/other",
        "MA_PORT": "1234",
        "MA_LOG_LEVEL": "DEBUG",
    }
    config = last_start.config_for_start(shell, last_start.Choice.REMEMBERED)
    assert dict(config.handed_on) == {"MA_DATABASE_URL": DATABASE, "MA_LOG_LEVEL": "DEBUG"}
    assert str(config.port) == installation.shell["MA_PORT"]
    assert config.servers == ("a", "b")


def test_the_first_start_has_nothing_to_compare_with(installation: Installation) -> None:
    assert "is in use" in installation.up(MA_DATABASE_URL=DATABASE)
