import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import cli, last_start, secret_files
from deploy import config as configuration
from deploy.commands import status
from deploy.commands.status import summary
from deploy.config import REPOSITORY, Config
from deploy.console import DeployError, duration
from deploy.layout import Layout
from deploy.processes import earlier_starts, readiness
from deploy.services.ports import free_ports


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config = configuration.read({"MA_DATA": str(tmp_path / "data"), "MA_AMQP_PORT": "21000"})
    Layout(config.data).make_folders()
    secret_files.ensure_all(config, Layout(config.data))
    return config


PORTS = ("MA_PORT", "MA_AMQP_PORT", "MA_STOMP_PORT", "MA_CORE_PORT", "MA_REDIS_PORT")


def ma(config: Config, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(REPOSITORY / "ma"), *arguments],
        env={"PATH": os.environ["PATH"], "MA_DATA": str(config.data), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


# -- env


def test_env_gives_a_script_all_it_needs(config: Config) -> None:
    facts = status.gather(config, Layout(config.data))
    assert facts["url"] == "http://127.0.0.1:8000/"
    assert facts["broker"]["amqp"] == "amqp://127.0.0.1:21000"
    assert set(facts["broker"]["accounts"]) == {"kma", "publisher", "ma-ops"}
    assert facts["logs"] == str(config.data / "log")
    assert set(facts["servers"]) == {"srv-1", "srv-2"}
    assert facts["environ"]["MA_BROKER_USER"] == "ma-ops"


@pytest.mark.process
def test_env_prints_json_or_what_a_shell_can_evaluate(config: Config) -> None:
    assert json.loads(ma(config, "env", "--json").stdout)["data"] == str(config.data)
    script = ma(config, "env").stdout + 'printf %s "$MA_BROKER_USER"'
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == "ma-ops"


@pytest.mark.process
def test_env_before_the_first_start_says_what_to_do(tmp_path: Path) -> None:
    done = ma(configuration.read({"MA_DATA": str(tmp_path / "none")}), "env", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("is missing: ./ma up creates it\n")
    assert len(done.stderr.splitlines()) == 1


# -- logs


@pytest.mark.process
def test_logs_shows_the_end(config: Config) -> None:
    Layout(config.data).log("web").write_text("".join(f"{number}\n" for number in range(200)))
    assert ma(config, "logs", "web", "-n", "2").stdout == "198\n199\n"


@pytest.mark.process
def test_logs_without_a_name_lists_them(config: Config) -> None:
    for name in ("web", "beat"):
        Layout(config.data).log(name).touch()
    assert ma(config, "logs").stdout == "beat\nweb\n"


def test_an_unknown_log_is_one_line_with_those_there_are(config: Config) -> None:
    Layout(config.data).log("web").touch()
    with pytest.raises(DeployError, match="no log '../secrets/django_key'; existing logs: web"):
        status.logs(config, name="../secrets/django_key", follow=False, lines=1)


@pytest.mark.process
def test_following_a_log_goes_on_in_the_new_file_after_a_rotation(config: Config) -> None:
    log = Layout(config.data).log("web")
    log.write_text("old\n")
    environ = {"PATH": os.environ["PATH"], "MA_DATA": str(config.data)}
    command = [sys.executable, str(REPOSITORY / "ma"), "logs", "web", "-f"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "old\n"
        with log.open("a") as file:
            file.write("grown\n")
        assert process.stdout.readline() == "grown\n"
        log.rename(log.with_suffix(".log.1"))
        log.write_text("new\n")
        assert process.stdout.readline() == "new\n"
        process.terminate()


# -- status


@pytest.mark.process
def test_status_where_nothing_runs_says_so_and_fails(config: Config) -> None:
    done = ma(config, "status")
    assert (done.returncode, done.stdout) == (1, "nothing is running: ./ma up\n")
    told = json.loads(ma(config, "status", "--json").stdout)
    assert [disk["problem"] for disk in told.pop("disks")] == [""]
    assert told == {"processes": [], "left_behind": [], "health": None}


@pytest.mark.process
def test_status_names_what_a_killed_runner_left_behind(config: Config) -> None:
    environ = earlier_starts.marked(Layout(config.data))
    with subprocess.Popen(["sleep", "60"], env=environ) as left:
        try:
            done = ma(config, "status")
            document = json.loads(ma(config, "status", "--json").stdout)
        finally:
            left.kill()
    assert done.returncode == 1
    assert done.stdout == (
        f"the process runner was killed; still running: sleep {left.pid}\n"
        "Stop them with ./ma down, then ./ma up\n"
    )
    assert document["left_behind"] == [{"name": "sleep", "pid": left.pid}]


def test_the_health_line_names_parts_and_servers() -> None:
    document = {
        "status": "degraded",
        "parts": {"database": "ok", "redis": {"status": "down"}},
        "servers": {"srv-1": 1.4, "srv-2": None},
    }
    assert (
        summary(document)
        == "degraded · database ok · redis down · srv-1 heartbeat 1 s ago · srv-2 no heartbeat yet"
    )
    assert summary(None) == "the site does not answer"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (61, "1 min 1 s"), (3 * 3600 + 120, "3 h 2 min"), (90000, "1 d 1 h")]
)
def test_durations_are_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# -- what the site says


def test_a_heartbeat_of_a_former_life_does_not_count() -> None:
    document = {"servers": {"srv-1": 5.0, "srv-2": None}}
    assert readiness.heard_within(document, "srv-1", 6.0)
    assert not readiness.heard_within(document, "srv-1", 4.0)
    assert not readiness.heard_within(document, "srv-2", 60.0)
    assert not readiness.heard_within(document, "srv-3", 60.0)
    assert not readiness.heard_within(None, "srv-1", 60.0)


@pytest.mark.process
def test_a_site_that_is_away_is_none(config: Config) -> None:
    assert readiness.ask_site(configuration.read({"MA_PORT": "1"})) is None


# -- before the first start


@pytest.mark.process
@pytest.mark.parametrize("arguments", [("doctor",), ("reindex",), ("manage", "check"), ("demo",), ("env",)])
def test_what_needs_a_start_says_so_in_one_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    config = configuration.read({"MA_DATA": str(tmp_path / "none")})
    done = ma(config, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"ma: .*: \./ma up( creates it)?\n", done.stderr)
    assert not config.data.exists()


@pytest.mark.process
@pytest.mark.parametrize("folder", ["/proc/nope", "/dev/null", "/dev/null/below"])
def test_a_data_folder_that_cannot_be_made_is_one_line(folder: str) -> None:
    ports = dict(zip(PORTS, map(str, free_ports(5)), strict=True))
    for arguments in (("up", "--detach"), ("doctor",), ("status",), ("down",)):
        done = ma(configuration.read({"MA_DATA": folder}), *arguments, **ports)
        assert len((done.stdout + done.stderr).splitlines()) == 1, done
        assert done.returncode == (0 if arguments == ("down",) else 1)


# -- what all commands share


@pytest.mark.process
@pytest.mark.parametrize("arguments", [(), ("nothing",), ("up", "--what")])
def test_what_is_no_command_is_refused_with_the_usage(config: Config, arguments: tuple[str, ...]) -> None:
    done = ma(config, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ma")


@pytest.mark.process
def test_help_names_every_command(config: Config) -> None:
    shown = ma(config, "--help").stdout
    for name in (
        "up",
        "down",
        "status",
        "logs",
        "env",
        "demo",
        "doctor",
        "reindex",
        "manage",
        "test",
        "bench",
        "docs",
    ):
        assert f"    {name} " in shown


# -- what it was started with


def test_other_commands_mean_the_installation_as_it_was_started(tmp_path: Path) -> None:
    started = configuration.read(
        {
            "MA_DATA": str(tmp_path), "MA_PORT": "20001", "MA_SERVERS": "srv-9",
            "MA_ARCHIVE_URL": "file:///archive",
            "MA_DATABASE_URL": "postgresql://u:p@h/d",
        }
    )  # fmt: skip
    layout = Layout(tmp_path)
    layout.make_folders()
    last_start.keep(started, layout)
    assert (layout.run / "environment.json").stat().st_mode & 0o777 == 0o600

    assert last_start.config_of_last_start({"MA_DATA": str(tmp_path)}) == started
    other = last_start.config_of_last_start(
        {"MA_DATA": str(tmp_path), "MA_ARCHIVE_URL": "", "MA_PORT": "20002"}
    )
    assert (other.port, dict(other.handed_on)) == (20002, {"MA_DATABASE_URL": "postgresql://u:p@h/d"})
    assert last_start.config_of_last_start({"MA_DATA": str(tmp_path / "new")}).port == 8000


@pytest.mark.process
def test_a_shell_that_sets_nothing_has_the_archive_of_the_installation(config: Config) -> None:
    started = configuration.read({"MA_DATA": str(config.data), "MA_ARCHIVE_URL": "file:///archive"})
    last_start.keep(started, Layout(config.data))
    assert json.loads(ma(config, "env", "--json").stdout)["environ"]["MA_ARCHIVE_URL"] == "file:///archive"
    told = ma(config, "env", "--json", MA_ARCHIVE_URL="")
    assert "MA_ARCHIVE_URL" not in json.loads(told.stdout)["environ"]


def test_a_folder_of_somebody_else_is_told_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*given: object, **named: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", "/root/none/run")

    monkeypatch.setattr("deploy.commands.up.up", run)
    monkeypatch.setattr("deploy.last_start.config_for_start", lambda environ, choice: None)
    assert cli.main(["up"]) == 1
    said = capsys.readouterr().err
    assert "/root/none/run: Permission denied" in said and "MA_DATA" in said
