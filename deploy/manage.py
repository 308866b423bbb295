"""Runs the site's manage.py with the environment of this installation."""

import os
import subprocess
from pathlib import Path

from deploy import environment, secret_files
from deploy.config import REPOSITORY, Config
from deploy.console import DeployError, run_logged
from deploy.installing import python_packages
from deploy.layout import Layout
from deploy.processes import earlier_starts

# The exit code of `manage.py prepare content` for it.
FOREIGN_BROKER = 3


class ForeignBroker(DeployError):
    """The broker is another site's; nothing was changed there."""


def site_environment(config: Config, layout: Layout) -> dict[str, str]:
    """Of a command of this shell: what the shell says of the database may be in no file yet."""
    hidden = set(environment.UNSET) - {"DJANGO_SUPERUSER_PASSWORD"}
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    path = f"{python_packages.VENV / 'bin'}:{inherited.get('PATH', os.defpath)}"
    told = {name: value for name, value in config.handed_on.items() if name in secret_files.FROM_SHELL}
    site = environment.site(config, layout)
    site = {name: value for name, value in site.items() if name.removesuffix("_FILE") not in told}
    return inherited | site | told | {"PATH": path}


def refuse_before_first_start(layout: Layout) -> None:
    if not python_packages.PYTHON.exists():
        raise DeployError("nothing is installed yet: ./ma up")
    # The first thing that every start makes.
    secret_files.read_secret(layout.secrets / "django_key")


def refuse_database_of_before(config: Config, layout: Layout) -> None:
    """Before anything is changed. Raises DeployError, which says how to come over."""
    asked = subprocess.run(
        [str(python_packages.PYTHON), "manage.py", "history"],
        env=os.environ | {"MA_DATABASE_URL": environment.database_url(config, layout)},
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode != 0:
        raise DeployError(asked.stderr.strip())


def _of_a_start(config: Config, layout: Layout) -> dict[str, str]:
    """Marked: where the start that waits for such a command is killed, the next one finds it and ends it."""
    return site_environment(config, layout) | {earlier_starts.MARK: str(layout.run)}


def quietly(config: Config, layout: Layout, *arguments: str | Path) -> None:
    """Its output goes to the log `manage`; a failure is a DeployError with the last lines."""
    run_logged(
        [python_packages.PYTHON, "manage.py", *arguments],
        what=f"manage.py {arguments[0]}",
        log=layout.log("manage"),
        env=_of_a_start(config, layout),
        cwd=REPOSITORY,
    )


def prepare_content(config: Config, layout: Layout, *, demo: bool, adopt_broker: bool) -> str:
    """What a person has to read. Raises ForeignBroker with what the site says of it, DeployError for all
    else."""
    arguments = ["prepare", "content"]
    if adopt_broker:
        arguments += ["--adopt-broker", "--reason", "./ma up --adopt-broker"]
    if demo:
        arguments += ["--demo", *demo_arguments(config, layout)]
    for server in config.servers:
        arguments += ["--token", server, str(secret_files.token_file(layout, server))]
    done = _captured(config, layout, *arguments)
    if done.returncode == FOREIGN_BROKER:
        raise ForeignBroker(done.stderr.strip().rpartition("CommandError: ")[2])
    if done.returncode != 0:
        raise _failed("prepare content", done)
    return done.stdout.strip()


def demo_arguments(config: Config, layout: Layout) -> tuple[str, ...]:
    return "--servers", ",".join(config.servers), "--password-file", str(secret_files.first_password(layout))


def shown(config: Config, layout: Layout, *arguments: str) -> int:
    """Its output is the person's; the exit code is returned."""
    refuse_before_first_start(layout)
    command = [str(python_packages.PYTHON), "manage.py", *arguments]
    return subprocess.run(
        command, env=site_environment(config, layout), cwd=REPOSITORY, check=False
    ).returncode


def printed(config: Config, layout: Layout, *arguments: str) -> str:
    """What it printed, for showing it once; it is in no log, because it may hold a password."""
    done = _captured(config, layout, *arguments)
    if done.returncode != 0:
        raise _failed(arguments[0], done)
    return done.stdout.strip()


def _captured(config: Config, layout: Layout, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """What it says to standard error is logged; standard output may hold a password and is not."""
    done = subprocess.run(
        [str(python_packages.PYTHON), "manage.py", *arguments],
        env=_of_a_start(config, layout),
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    with layout.log("manage").open("a", encoding="utf-8") as log:
        log.write(f"$ manage.py {' '.join(arguments)}\n{done.stderr}")
    return done


def _failed(command: str, done: "subprocess.CompletedProcess[str]") -> DeployError:
    why = done.stderr[-2000:].strip()
    return DeployError(f"manage.py {command} failed with exit code {done.returncode}:\n{why}")
