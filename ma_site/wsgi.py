"""WSGI entry of the web process."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import resolve

from console import old_database

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ma_site.settings")

old_database.refuse(os.environ)
application = get_wsgi_application()

# What a process serves with lives as long as it does: no collection has to look through it again, which would
# hold up a request for a tenth of a second every few. The addresses are read here, not by the first who asks.
resolve("/")
gc.collect()
gc.freeze()
