"""./ma bench NAME: the product beside a bare reference, on a throw-away broker of their own."""

import subprocess
from collections.abc import Sequence

from deploy import python_packages
from deploy.config import REPOSITORY, Config
from deploy.problem import Problem


def run(config: Config, arguments: Sequence[str]) -> int:
    if not python_packages.PYTHON.exists():
        raise Problem("nothing is installed yet: ./ma up")
    command = [str(python_packages.PYTHON), "-m", "bench", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, check=False).returncode
