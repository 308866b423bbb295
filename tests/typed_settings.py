"""The site's settings for the type checker, which loads them without an environment."""

from tests import environment

environment.fill_in()

from ma_site.settings import *  # noqa: E402, F403 - only after the environment is there
