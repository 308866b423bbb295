"""The site's settings for the type checker, which loads them without an environment."""

import os
import tempfile
from pathlib import Path

from tests import environment

# One folder for all its runs: the type checker ends without cleaning up.
environment.fill_in(Path(tempfile.gettempdir()) / f"ma-types-{os.getuid()}")

from ma_site.settings import *  # noqa: E402, F403 - only after the environment is there
