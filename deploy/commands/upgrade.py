"""./ma upgrade: this program takes over what another version runs or ran. Broker and KMAs go on until the
site is there again: MA before KMAs."""

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy import certificates, environment, manage, secret_files
from deploy.backups import create, database
from deploy.backups import manifest as manifests
from deploy.commands import up
from deploy.config import DEMO_AGENTS, Config
from deploy.console import DeployError, duration, say
from deploy.installing import artemis_download, python_packages
from deploy.layout import Layout
from deploy.processes import order
from deploy.processes.order import Start
from deploy.processes.runner import Runner, script_path

BACKUPS = "upgrade-backups"
KEPT = 2


@dataclass(frozen=True)
class Plan:
    """`seconds`: about so long the migrations lock. `one_way`: what no way leads back from."""

    migrations: tuple[str, ...]
    seconds: float
    one_way: tuple[str, ...]
    slow: tuple[str, ...]
    applied: tuple[str, ...]
    jobs: int


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "upgrade", help="take over an installation of an older version: site, then KMAs"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="say what would be done and change nothing")
    what.add_argument("--back", action="store_true", help="take the migrations of the last upgrade back")


def upgrade(config: Config, chosen: argparse.Namespace) -> int:
    layout = Layout(config.data)
    up.refuse_half_restored(layout)
    secret_files.read_secret(layout.secrets / "django_key")
    if chosen.back:
        return _back(config, layout)
    _refuse_missing_packages(layout, chosen.check)
    manage.refuse_database_of_before(config, layout)
    plan = plan_of(json.loads(manage.printed(config, layout, "upgrade_plan")))
    _refuse_little_space(config, layout)
    for line in lines_of(plan, manifests.version()):
        say(line)
    if not chosen.check:
        _carry_out(config, layout, plan)
        _end(layout)
    return 0


def plan_of(found: Mapping[str, Any]) -> Plan:
    steps = found["steps"]
    seconds: dict[str, float] = {}
    for step in steps:
        name = str(step["migration"])
        seconds[name] = seconds.get(name, 0.0) + step["seconds"]
    slow = (
        f"{each['table']}: {each['rows']} rows, about {each['seconds']:.0f} s"
        for each in steps
        if each["seconds"]
    )
    return Plan(
        migrations=tuple(seconds),
        seconds=sum(seconds.values()),
        one_way=tuple(dict.fromkeys(str(step["migration"]) for step in steps if not step["reversible"])),
        slow=tuple(slow),
        applied=tuple(found["applied"]),
        jobs=found["jobs"],
    )


def lines_of(plan: Plan, version: str) -> list[str]:
    lines = [f"version {version}: {len(plan.migrations)} migrations are missing"]
    lines += [f"  {name}" for name in plan.migrations]
    if plan.migrations:
        about = duration(max(1.0, plan.seconds))
        lines.append(f"  they lock the database for about {about}; the site is away meanwhile")
    lines += [f"    {each}" for each in plan.slow]
    if plan.one_way:
        lines.append(f"  no way back but the backup from: {', '.join(plan.one_way)}")
    if plan.jobs:
        lines.append(f"  {plan.jobs} jobs on messages are open: they go on afterwards where they were")
    lines.append("  KMAs and broker go on meanwhile: what KMAs have to report waits in their spools")
    return lines


def _refuse_missing_packages(layout: Layout, checking: bool) -> None:
    missing = not python_packages.installed(python_packages.for_start(), "start")
    if missing and checking:
        raise DeployError("this version needs other Python packages: ./ma upgrade installs them first")
    if not checking:
        up.install_all(layout, say)


def _refuse_little_space(config: Config, layout: Layout) -> None:
    """For the backup, and for what a table takes that is copied by a migration."""
    url = environment.database_url(config, layout)
    if database.engine_of(url) != database.SQLITE:
        return
    file = database.file_of(url)
    needed, free = 3 * file.stat().st_size + create.SPARE, shutil.disk_usage(file.parent).free
    if free < needed:
        raise DeployError(
            f"{file.parent} has {free // create.MB} MB free, the upgrade needs {needed // create.MB} MB, "
            "three times the database. Nothing was changed"
        )


# -- carried out ------------------------------------------------------------------------------------------


def _carry_out(config: Config, layout: Layout, plan: Plan) -> None:
    target = layout.data / BACKUPS
    wanted = create.Wanted(target, "", messages=False, keep=KEPT)
    folder, _made = create.create(config, layout, wanted, _nothing_stops, say)
    say(f"backup of before: {folder}")
    if plan.migrations:
        _remember(layout, plan, folder)
    runner = Runner(layout)
    if not runner.alive():
        manage.quietly(config, layout, "prepare", "database")
        say("migrated. Start it: ./ma up --detach")
        return
    demo = any(state.name == "demo" and state.running for state in runner.states())
    offers = demo or _offers_demo(config, layout)
    if not _may_roll(config, layout, runner):
        say("the broker or the list of processes is another one: everything is restarted")
        order.stop_everything(layout, say)
        if up.up(config, detach=True, demo=offers) != 0:
            raise DeployError("the site did not start: ./ma status, ./ma logs web")
        return
    starting = Start(config, layout, up.processes(config), say)
    starting.roll(demo=demo, offers=offers)
    say(f"version {manifests.version()} runs: ./ma doctor")


def _nothing_stops() -> AbstractContextManager[object]:
    raise DeployError("a backup before an upgrade stops nothing")


def _may_roll(config: Config, layout: Layout, runner: Runner) -> bool:
    """Whether the runner knows all processes, and the broker is the one that this version brings."""
    known = {state.name for state in runner.states()}
    same = known == {process.name for process in up.processes(config)}
    return same and artemis_download.unpacked_in(layout.data).exists() and _same_broker(config, layout)


def _same_broker(config: Config, layout: Layout) -> bool:
    return str(artemis_download.unpacked_in(layout.data)) in (
        layout.broker / "etc" / "artemis.profile"
    ).read_text("utf-8") and (not config.tls or certificates.files_of(layout).authority.exists())


def _offers_demo(config: Config, layout: Layout) -> bool:
    """By the script of a KMA that the last start wrote."""
    scripts = (script_path(layout, f"kma-{server}") for server in config.servers)
    return any(each.exists() and DEMO_AGENTS in each.read_text("utf-8") for each in scripts)


# -- the way back ------------------------------------------------------------------------------------------


def _file(layout: Layout) -> Path:
    return layout.run / "upgrade.json"


def _remember(layout: Layout, plan: Plan, backup: Path) -> None:
    """An upgrade that was killed and is begun again goes back to where the first one began."""
    known = _remembered(layout)
    if known is None or known["ended"]:
        known = {"applied": list(plan.applied), "one_way": [], "backup": str(backup)}
    one_way = sorted({*plan.one_way, *known["one_way"]})
    secret_files.write(_file(layout), json.dumps({**known, "one_way": one_way, "ended": False}))


def _end(layout: Layout) -> None:
    if (known := _remembered(layout)) is not None:
        secret_files.write(_file(layout), json.dumps({**known, "ended": True}))


def _remembered(layout: Layout) -> dict[str, Any] | None:
    try:
        return dict(json.loads(_file(layout).read_text("utf-8")))
    except (OSError, ValueError):
        return None


def _back(config: Config, layout: Layout) -> int:
    known = _remembered(layout)
    if known is None:
        raise DeployError("there is no upgrade to take back: none has migrated this installation")
    if known["one_way"]:
        raise DeployError(
            f"no way leads back from {', '.join(known['one_way'])}: ./ma down, then with the old version "
            f"./ma restore --apply {known['backup']}"
        )
    order.stop_everything(layout, say)
    for app, name in targets(known["applied"]):
        manage.quietly(config, layout, "migrate", app, name)
    _file(layout).unlink()
    say("the database is as the old version had it. Take the clone back to it, then ./ma up --detach")
    return 0


def targets(applied: Sequence[str]) -> list[tuple[str, str]]:
    """The last migration of each of our apps of before, `zero` for an app that had none."""
    last = dict.fromkeys((name.partition(".")[0] for name in sorted(manifests.known_migrations())), "zero")
    for each in sorted(applied):
        app, _, name = each.partition(".")
        if app in last:
            last[app] = name
    return sorted(last.items())
