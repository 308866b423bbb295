"""./ma bench NAME: the product beside a bare reference, on a throw-away broker of their own."""

import subprocess
from collections.abc import Sequence

from deploy import python_packages
from deploy.config import REPOSITORY, Config
from deploy.layout import Layout
from deploy.problem import Problem

# What these need, and what they are set beside, is installed when it is asked for.
OF_THE_PIPELINE = ("archive", "pipeline")


def run(config: Config, arguments: Sequence[str]) -> int:
    if not python_packages.PYTHON.exists():
        raise Problem("nothing is installed yet: ./ma up")
    if arguments and arguments[0] in OF_THE_PIPELINE:
        _install(config)
    command = [str(python_packages.PYTHON), "-m", "bench", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


def _install(config: Config) -> None:
    lines = (*python_packages.for_background(), *python_packages.requirements("requirements-bench.txt"))
    if not python_packages.installed(lines, "bench"):
        python_packages.install(lines, "bench", Layout(config.data).log("install"))
