"""The site's own settings, but for its static files: to compress them takes a minute, which no test needs."""

import os

from ma_site.requests import connection
from ma_site.settings import *  # noqa: F403
from ma_site.settings import STORAGES

STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
connection.BODY_SECONDS = float(os.environ.get("MA_TEST_BODY_SECONDS", connection.BODY_SECONDS))
