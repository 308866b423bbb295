"""The site's own settings, but for its static files: to compress them takes a minute, which no test needs."""

from ma_site.settings import *  # noqa: F403
from ma_site.settings import STORAGES

STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
