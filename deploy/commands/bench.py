"""./ma bench NAME: the product beside a bare reference, on this installation."""

import subprocess
from collections.abc import Sequence

from deploy import environment, manage, python_packages
from deploy.config import REPOSITORY, Config
from deploy.layout import Layout


def run(config: Config, arguments: Sequence[str]) -> int:
    layout = Layout(config.data)
    manage.refuse_before_first_start(layout)
    settings = manage.site_environment(config, layout) | environment.publisher(layout)
    command = [str(python_packages.PYTHON), "-m", "bench", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, env=settings, check=False).returncode
