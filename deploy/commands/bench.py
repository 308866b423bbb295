"""./ma bench NAME: the product beside a bare reference, on this installation."""

import subprocess
from collections.abc import Sequence

from deploy import environment, manage, python_packages
from deploy.config import REPOSITORY, Config
from deploy.layout import Layout
from deploy.problem import Problem


def run(config: Config, arguments: Sequence[str]) -> int:
    layout = Layout(config.data)
    if not python_packages.PYTHON.exists():
        raise Problem("nothing is installed yet: ./ma up")
    settings = manage.site_environment(config, layout) | environment.publisher(layout)
    command = [str(python_packages.PYTHON), "-m", "bench", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, env=settings, check=False).returncode
