import configparser
import shlex
import stat
import subprocess
from pathlib import Path

import pytest

from deploy import config as configuration
from deploy import last_start
from deploy.commands import up
from deploy.config import REPOSITORY, Config
from deploy.environment import Process
from deploy.layout import Layout
from deploy.processes.runner import script, script_path, write_runner_files


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configuration.read({"MA_DATA": str(tmp_path / "a b%c'd"), "MA_SERVERS": "one,two"})


def written(config: Config) -> tuple[Layout, configparser.RawConfigParser]:
    layout = Layout(config.data)
    layout.make_folders()
    write_runner_files(up.processes(config), config, layout)
    parser = configparser.RawConfigParser()
    parser.read(layout.supervisor_config)
    return layout, parser


def test_every_line_of_the_procfile_becomes_a_program(config: Config) -> None:
    _, parser = written(config)
    programs = [name.removeprefix("program:") for name in parser.sections() if name.startswith("program:")]
    assert programs == ["artemis", "redis", "web", "worker", "beat", "feed", "kma-one", "kma-two", "demo"]


def test_every_program_is_started_again_when_it_ends(config: Config) -> None:
    _, parser = written(config)
    sections = [name for name in parser.sections() if name.startswith("program:")]
    assert {parser[name]["autorestart"] for name in sections} == {"true"}


def test_a_data_folder_with_special_characters_survives_both_quotings(config: Config) -> None:
    layout, parser = written(config)
    command = parser["program:web"]["command"].replace("%%", "%")
    assert shlex.split(command) == ["/bin/sh", str(layout.run / "web.sh")]
    assert parser["program:web"]["stdout_logfile"].replace("%%", "%") == str(layout.logs / "web.log")


def test_what_is_written_is_for_its_owner_only_and_holds_no_secret(config: Config) -> None:
    layout, _ = written(config)
    for path in layout.run.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert "PASSWORD=" not in path.read_text()


@pytest.mark.process
def test_the_script_of_a_process_sets_its_environment_and_becomes_it(config: Config, tmp_path: Path) -> None:
    layout = Layout(config.data)
    process = Process("kma-one", "env -0", "one")
    settings = {"KMA_SERVER": "one", "ODD": "a'b $HOME %d\nx"}
    text = script(process, settings)
    inherited = {"PATH": "/usr/bin:/bin", "KMA_TOKEN": "inherited"}
    done = subprocess.run(["/bin/sh", "-c", text], env=inherited, capture_output=True, check=True)
    found = dict(pair.split("=", 1) for pair in done.stdout.decode().split("\0") if pair)
    assert found["KMA_SERVER"] == "one"
    assert found["ODD"] == settings["ODD"]
    assert "KMA_TOKEN" not in found
    assert found["PATH"] == f"{REPOSITORY}/.venv/bin:/usr/bin:/bin"
    assert layout.data == config.data


def test_each_kma_has_its_own_name_token_and_folder(config: Config) -> None:
    layout, _ = written(config)
    one, two = ((layout.run / f"kma-{server}.sh").read_text() for server in ("one", "two"))
    assert "KMA_SERVER=one" in one and "token_one" in one and "kma/one" in one
    assert "KMA_SERVER=two" in two and "token_two" in two and "kma/two" in two
    assert "broker_ops" not in one + two


def test_a_deep_data_folder_gets_a_short_socket() -> None:
    deep = Layout(Path("/" + "/".join(["folder"] * 30)))
    assert len(str(deep.socket)) < 90
    assert deep.socket != Layout(deep.data / "other").socket
    assert Layout(Path("/srv/ma")).socket == Path("/srv/ma/run/supervisor.sock")


SHELL = {
    "MA_DATABASE_URL": "postgresql://ma:database-secret@db.example.org/ma",
    "MA_DEADMAN_URL": "https://switch.example.org/ping/path-secret",
    "MA_EMAIL_URL": "smtp://mailer:mail-secret@mail.example.org/",
}


def test_passwords_of_a_person_s_shell_stand_in_no_script_and_in_nothing_remembered(tmp_path: Path) -> None:
    config = configuration.read({"MA_DATA": str(tmp_path / "data")} | SHELL)
    layout, _ = written(config)
    last_start.keep(config, layout)

    holding = [path.name for path in layout.run.iterdir() if "-secret" in path.read_text()]
    assert holding == []
    again = last_start.config_of_last_start({"MA_DATA": str(tmp_path / "data")})
    assert dict(again.handed_on) == SHELL, "the other commands know them all the same"
    kept = [
        path
        for path in layout.secrets.iterdir()
        if path.name.startswith(("database_url", "deadman_url", "email_url"))
    ]
    assert {path.read_text() for path in kept} == set(SHELL.values())
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}


@pytest.mark.process
@pytest.mark.parametrize("name", ["artemis", "redis", "kma-one", "demo", "web"])
def test_no_process_inherits_a_secret_of_the_site(config: Config, name: str) -> None:
    server = name.removeprefix("kma-") if name.startswith("kma") else ""
    layout = Layout(config.data)
    layout.make_folders()
    write_runner_files([Process(name, "env -0", server)], config, layout)
    inherited = {
        "PATH": "/usr/bin:/bin",
        "DJANGO_SUPERUSER_PASSWORD": "admin-secret",
        "SHOP_URL": "x",
    } | SHELL

    done = subprocess.run(
        ["/bin/sh", str(script_path(layout, name))],
        env=inherited,
        capture_output=True,
        check=True,
    )

    assert b"-secret" not in done.stdout
    assert b"SHOP_URL=x" in done.stdout


def test_a_shell_that_names_a_file_replaces_the_url_of_the_last_start(tmp_path: Path) -> None:
    data, file = {"MA_DATA": str(tmp_path / "data")}, tmp_path / "database"
    file.write_text(SHELL["MA_DATABASE_URL"])
    written(configuration.read(data | SHELL))
    config = configuration.read(data | SHELL)
    last_start.keep(config, Layout(config.data))
    shell = data | {"MA_DATABASE_URL_FILE": str(file)}

    known = last_start.config_of_last_start(shell).handed_on
    assert ("MA_DATABASE_URL" in known, known["MA_DATABASE_URL_FILE"]) == (False, str(file))
    started = last_start.config_for_start(shell, last_start.Choice.REFUSE)
    assert started.handed_on["MA_DATABASE_URL_FILE"] == str(file), (
        "the same database is no other installation"
    )
    last_start.keep(started, Layout(started.data))
    left = [
        path.name for path in Layout(started.data).secrets.iterdir() if path.name.startswith("database_url")
    ]
    assert left == [], "what nothing names any more is deleted"
