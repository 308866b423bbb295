"""./ma test: installs what the tests need and runs every stage, also after one has failed. --night runs what
a change breaks less often, --long the campaigns of hours, --changed[=REVISION] what a change breaks first, in
two minutes."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from deploy.config import REPOSITORY, Config
from deploy.console import DeployError, duration, say, table
from deploy.installing import artemis_download, python_packages, system_packages
from deploy.layout import Layout


@dataclass(frozen=True)
class Stage:
    """`lane`: those of one run one after the other, each lane beside the others. What the first one prints is
    shown as it comes, of the others when a stage has ended. `nice`: how far it stands back behind others."""

    name: str
    command: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict)
    lane: int = 0
    nice: int = 0


@dataclass(frozen=True)
class Result:
    """`processors`: seconds of the stage and of what it waited for; what it left running is not seen."""

    stage: Stage
    code: int
    seconds: float
    processors: float
    last_line: str
    failures: tuple[str, ...] = ()

    @property
    def row(self) -> tuple[str, ...]:
        state = "ok" if self.code == 0 else "FAILED"
        return self.stage.name, state, duration(self.seconds), duration(self.processors), self.last_line


# Two that write one cache at the same time lose it.
PYTEST = ("pytest", "-p", "no:cacheprovider")

# Lines of pytest: the assertion, the place, and the name of the test. Of each stage so many are repeated at
# the end.
OF_A_FAILURE = ("E   ", "FAILED ", "ERROR ")
MOST_REPEATED, LONGEST_REPEATED = 60, 300

# The first one ends by itself, the second one after its hours.
CAMPAIGNS = ("tests/campaigns/test_kills_by_mode.py", "tests/campaigns/test_kills.py")

CORES = os.cpu_count() or 1
# Tests that wait for brokers, processes and browsers leave the processors to others most of the time. Each
# worker has an Artemis of its own, some have one more, and a whole installation.
GB_EACH = 2
MEMORY_GB = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**30
WAITING = max(1, min(2 * CORES, MEMORY_GB // GB_EACH))

WAITS = (
    "tests/broker",
    "tests/kma",
    "tests/dlq",
    "tests/browser",
    "tests/product",
    "tests/campaigns",
    "tests/network",
    "tests/pipeline",
)
POSTGRESQL = {"MA_TEST_DATABASE": "postgresql"}
BY_DAY, ON_BOTH = ("-m", "not night"), ("-m", "both_databases and not night")


def _beside(workers: int) -> tuple[str, ...]:
    return "-n", str(workers), "--dist", "loadscope"


def _computing(name: str, *arguments: str, **settings: str) -> Stage:
    """What waits goes first: it has limits of time."""
    return Stage(name, (*PYTEST, *_beside(CORES), *arguments), settings, nice=5)


EVERYTHING = (
    Stage("ruff", ("ruff", "check", ".")),
    Stage("format", ("ruff", "format", "--check", ".")),
    Stage("mypy", ("mypy",)),
    Stage("imports", ("lint-imports",)),
    _computing("tests", "tests", *(f"--ignore={folder}" for folder in WAITS), *BY_DAY),
    _computing("tests, PostgreSQL", "tests/web", *ON_BOTH, **POSTGRESQL),
    Stage("tests that wait", (*PYTEST, *_beside(WAITING), *WAITS, *BY_DAY), lane=1),
)

NIGHT = (
    _computing("tests, PostgreSQL", "tests", *(f"--ignore={folder}" for folder in WAITS), **POSTGRESQL),
    # The map for --changed, and the share of branches that may not fall.
    _computing("tests, recorded", "tests", "-m", "pure or db", "-p", "tests.changed.recorder"),
    Stage("branches", ("python", "-m", "tests.changed.branches")),
    Stage("tests, Django 6", ("python", "-m", "tests.newer_django"), nice=5),
    Stage("mutants of changes", ("python", "-m", "tests.mutation", "--changed", "--minutes", "20"), nice=5),
    Stage("tests that wait, PostgreSQL", (*PYTEST, *_beside(WAITING), *WAITS), POSTGRESQL, lane=1),
)


def stages(arguments: Sequence[str]) -> tuple[Stage, ...]:
    """Everything; with arguments only pytest with these; --changed, --night and --long as the module says."""
    given = tuple(argument for argument in arguments if argument not in ("--long", "--night"))
    if changed := [argument for argument in given if argument.partition("=")[0] == "--changed"]:
        return (Stage("changed", ("python", "-m", "tests.changed", *changed[0].split("=")[1:])),)
    if "--night" in arguments:
        return NIGHT if not given else (Stage("tests", ("pytest", *given), POSTGRESQL),)
    if "--long" in arguments:
        campaigns = Stage(
            "campaigns", ("pytest", "--timeout=0", *(given or CAMPAIGNS)), {"MA_TEST_LONG": "1"}
        )
        return (campaigns,) if given else (Stage("mutants", ("python", "-m", "tests.mutation")), campaigns)
    if given:
        return (Stage("tests", ("pytest", *given)),)
    return EVERYTHING


def test(config: Config, arguments: Sequence[str]) -> int:
    started = time.monotonic()
    _install(Layout(config.data))
    installed = time.monotonic()
    lanes: dict[int, list[Stage]] = {}
    for stage in stages(arguments):
        lanes.setdefault(stage.lane, []).append(stage)
    if len(lanes) > 1:
        artemis_download.fetch(Layout(config.data).log("install"))  # once, not by two stages at the same time
        installed = time.monotonic()
    with ThreadPoolExecutor() as beside:
        waiting = [beside.submit(_run_unseen, some) for lane, some in lanes.items() if lane]
        results = [_run_seen(stage) for stage in lanes.get(0, ())]
        for each in waiting:
            results += each.result()
    if len(results) > 1:
        for result in results:
            if result.failures:
                say(f"\n== failures of {result.stage.name}\n" + "\n".join(result.failures))
        heading = ("", "", "wall", "processors", "")
        before = ("installation", "", duration(installed - started), "", "missing packages")
        spent = sum(result.processors for result in results)
        after = ("everything else", "", duration(time.monotonic() - installed), duration(spent), "")
        say("\n" + table([heading, before, *(result.row for result in results), after]))
        say(_branches())
    return 0 if all(result.code == 0 for result in results) else 1


def _branches() -> str:
    """As the last night measured them."""
    place = Path(os.environ.get("MA_TEST_CACHE") or REPOSITORY / "var" / "test") / "coverage.txt"
    if not place.exists():
        return "branches: ./ma test --night measures their coverage"
    shares = ", ".join(f"{line} %" for line in place.read_text().splitlines())
    day = time.strftime("%F", time.localtime(place.stat().st_mtime))
    return f"branch coverage of pure and db tests, {day}: {shares}"


def _install(layout: Layout) -> None:
    layout.make_folders()
    log = layout.log("install")
    start, tests = python_packages.for_start(), python_packages.for_tests()
    wanting = not python_packages.installed(start, "start")
    # The tests of the whole product unpack the broker into data folders of their own.
    needs = (
        system_packages.needs_of_start(broker=True, virtual_environment=wanting)
        + system_packages.needs_of_tests()
    )
    system_packages.ensure_installed(needs, log, say)
    # The types of the pipeline need its packages, its tests its drivers too.
    for lines, stamp in (
        (start, "start"),
        (tests, "tests"),
        (python_packages.for_background(), "background"),
    ):
        if not python_packages.installed(lines, stamp):
            say(f"installing Python packages ({stamp})")
            python_packages.install(lines, stamp, log)
    artemis_download.ensure_fetched(log)


def _run_seen(stage: Stage) -> Result:
    """Passes the output on as it comes."""
    say(f"\n== {stage.name}: {' '.join(stage.command)}")
    return _run(stage, lambda line: print(line, end="", flush=True))


def _run_unseen(stages: Sequence[Stage]) -> list[Result]:
    """Shows what each printed when it has ended."""
    ended = []
    for stage in stages:
        lines: list[str] = []
        ended.append(_run(stage, lines.append))
        say(f"\n== {stage.name}: {' '.join(stage.command)}\n{''.join(lines)}")
    return ended


def _run(stage: Stage, tell: Callable[[str], None]) -> Result:
    """The last line and what failed are repeated in the summary: many readers get only the end of a long
    output."""
    started = time.monotonic()
    programs = python_packages.VENV / "bin"
    settings = os.environ | {"PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}"} | stage.settings
    command = ["nice", "-n", str(stage.nice), str(programs / stage.command[0]), *stage.command[1:]]
    last_line, failures = "", list[str]()
    with subprocess.Popen(
        command,
        cwd=REPOSITORY,
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            tell(line)
            last_line = line.strip("= \n") or last_line
            if line.startswith(OF_A_FAILURE) and len(failures) < MOST_REPEATED:
                failures.append(line.rstrip()[:LONGEST_REPEATED])
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds, processors = time.monotonic() - started, used.ru_utime + used.ru_stime
    return Result(stage, process.returncode, seconds, processors, last_line, tuple(failures))


# -- ./ma bench NAME: the product beside a bare reference, on a throw-away broker of their own; ./ma docs ----


# What these need, and what they are set beside, is installed when it is asked for.
OF_THE_PIPELINE = ("archive", "pipeline")


def bench(config: Config, arguments: Sequence[str]) -> int:
    if not python_packages.PYTHON.exists():
        raise DeployError("nothing is installed yet: ./ma up")
    if arguments and arguments[0] in OF_THE_PIPELINE:
        _install_for_bench(config)
    command = [str(python_packages.PYTHON), "-m", "bench", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


def docs(config: Config, arguments: Sequence[str]) -> int:
    """Builds the site of docs/, which describes the code of this clone; nothing has to run."""
    layout = Layout(config.data)
    layout.make_folders()
    lines = (*python_packages.for_start(), *python_packages.requirements("requirements-docs.txt"))
    if not python_packages.installed(lines, "docs"):
        say("installing Python packages (docs)")
        python_packages.install(lines, "docs", layout.log("install"))
    folder = arguments or [str(config.data / "docs")]
    command = [str(python_packages.PYTHON), "-m", "handbook", *folder]
    return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


def _install_for_bench(config: Config) -> None:
    lines = (*python_packages.for_background(), *python_packages.requirements("requirements-bench.txt"))
    if not python_packages.installed(lines, "bench"):
        python_packages.install(lines, "bench", Layout(config.data).log("install"))
