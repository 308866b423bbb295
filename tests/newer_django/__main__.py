"""python -m tests.newer_django [ARGUMENT…]: see the package."""

import os
import subprocess
import sys
from collections.abc import Sequence

from deploy.config import REPOSITORY
from deploy.console import DeployError
from tests.newer_django import installation, pythons
from tests.services import cache

# Those that reach the site. What needs a broker or processes tells little more of Django.
TESTS = ("tests/architecture", "tests/dlq", "tests/unit", "tests/web", "-m", "pure or db")
VERSIONS = "import django, sys; print('Python', sys.version.split()[0], 'Django', django.get_version())"


def main(arguments: Sequence[str]) -> int:
    folder = cache() / "newer_django"
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "install.log"
    try:
        programs = installation.ensure(folder, pythons.ensure(log), log)
    except DeployError as problem:
        print(problem, flush=True)
        return 1
    subprocess.run([programs / "python", "-c", VERSIONS], check=True)
    # Migrated databases and the costs of tests are others than those with the pinned Django.
    settings = {"MA_TEST_CACHE": str(folder), "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}"}
    beside = ("-n", str(os.cpu_count() or 1), "--dist", "loadscope", *TESTS)
    command = [str(programs / "pytest"), "-p", "no:cacheprovider", *(arguments or beside)]
    return subprocess.run(command, cwd=REPOSITORY, env=os.environ | settings, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
