"""./ma backup, ./ma restore: of the installation in this clone."""

import time
from collections.abc import Sequence
from pathlib import Path

from deploy import backups, environment, manage, release
from deploy.backups import Installation
from deploy.commands import up
from deploy.config import Config
from deploy.console import say_if_heard as say
from deploy.layout import Layout
from deploy.processes.runner import Runner


def backup(config: Config, arguments: Sequence[str]) -> int:
    layout = Layout(config.data)
    manage.refuse_before_first_start(layout)
    parser = backups.backup_options("ma backup")
    parser.add_argument(
        "--stop", action="store_true", help="stop everything meanwhile, and back up messages and spools too"
    )
    chosen = parser.parse_args(arguments)
    running = Runner(layout).alive()
    began = time.monotonic()
    try:
        if chosen.stop and running:
            up.down(config)
        path = backups.run_backup(chosen, _what(config, layout), stopped=chosen.stop or not running)
    finally:
        if chosen.stop and running:
            up.up(config, detach=True, demo=False)
            say(f"stopped for {time.monotonic() - began:.0f} s")
    manage.quietly(config, layout, "record_backup", path)
    return 0


def restore(config: Config, arguments: Sequence[str]) -> int:
    layout = Layout(config.data)
    running = f"{layout.data} is running (./ma down)" if Runner(layout).alive() else ""
    return backups.run_restore(arguments, "ma restore", _what(config, layout), running)


def _what(config: Config, layout: Layout) -> Installation:
    stopped: dict[str, Path] = {
        name: folder
        for name, folder in (("broker", layout.broker / "data"), ("kma", layout.data / "kma"))
        if folder.is_dir()
    }
    return Installation(release.version(), environment.database_url(config, layout), layout.secrets, stopped)
