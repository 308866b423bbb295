"""Registers every page and form of the site, once. The addresses need them; processes without addresses do
not."""

from django.contrib import admin

import agents.pages.urls
import console.urls
import dlq.pages.urls
import failures.pages.urls
import ma_site.pages.urls

# In the order of their addresses: the first that fits is taken.
PAGES = (
    console.urls,
    agents.pages.urls,
    failures.pages.urls,
    dlq.pages.urls,
    ma_site.pages.urls,
)


def register_pages() -> None:
    for pages in PAGES:
        pages.register()
    admin.autodiscover()
