"""WSGI entry of the web process."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ma_site.settings")

application = get_wsgi_application()
