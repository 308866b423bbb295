"""Every address of the MA. The API lives under /api/v1/, pages and forms of the admin site are the rest."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, include, path, re_path
from drf_spectacular.views import SpectacularAPIView

import agents.urls
import alerts.urls
import console.urls
import dlq.urls
import failures.urls
import insights.urls
import metrics.urls
import retention.pages
from console.audit.refusals import add_audited_page
from console.rest.errors import unknown_address
from console.ui.page import add_page, set_navigation
from ma_site.health import health
from ma_site.pages import bulk, overview
from ma_site.pages.api_docs import ApiDocs
from ma_site.pages.glossary import glossary
from ma_site.pages.health import health_page
from ma_site.pages.navigation import NAVIGATION
from ma_site.pages.search import search
from ma_site.scrape.page import metrics as scraped
from ma_site.scrape.page import with_slash as scraped_with_slash


def register() -> None:
    set_navigation(NAVIGATION)
    add_page("settings/", overview.setting_list, "settings")
    add_audited_page("bulk/settings/<slug:verb>/", bulk.bulk_page, "bulk", bulk.ACTION)
    add_page("bulk/results/<uuid:whole>/", bulk.bulk_result, "bulk_result")
    add_page("health/", health_page, "health")
    add_page("glossary/", glossary, "glossary")
    add_page("search/", search, "search")


# -- registers every page and form of the site, once ---------------------------------------------------------
# The addresses need them; processes without addresses do not.


# In the order of their addresses: the first that fits is taken.
PAGES = (
    console.urls,
    agents.urls,
    failures.urls,
    dlq.urls,
    metrics.urls,
    alerts.urls,
    retention.pages,
    insights.urls,
)


def register_pages() -> None:
    for pages in PAGES:
        pages.register()
    register()
    admin.autodiscover()


def favicon(request: HttpRequest) -> HttpResponseRedirect:
    """Browsers ask for it beside answers that name no icon."""
    return HttpResponseRedirect(static("ma/icon.svg"))


register_pages()

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz/", health, name="health"),
    # As Prometheus asks by itself: without a slash.
    path("metrics", scraped, name="metrics"),
    path("metrics/", scraped_with_slash),
    path("favicon.ico", favicon),
    path("i18n/", include("django.conf.urls.i18n")),
    path("api/v1/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/v1/docs/", ApiDocs.as_view(url_name="schema"), name="docs"),
    path("api/v1/", include("console.urls")),
    path("api/v1/", include("agents.urls")),
    path("api/v1/", include("failures.urls")),
    path("api/v1/", include("dlq.urls")),
    path("api/v1/", include("alerts.urls")),
    path("api/v1/", include("metrics.urls")),
    path("api/v1/", include("insights.urls")),
    path("api/v1/", include("retention.api")),
    path("api/v1/", include("ma_site.api")),
    re_path(r"^api/(?P<path>.*)$", unknown_address),
    path("", admin.site.urls),
]

handler403 = "ma_site.requests.plain.permission_denied"
handler500 = "ma_site.requests.plain.server_error"
