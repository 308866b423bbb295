"""Every address of the MA. The API lives under /api/v1/, the admin site is the rest."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponseRedirect
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, include, path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from console.rest.errors import unknown_address
from ma_site.health import health
from ma_site.pages import urls


def favicon(request: HttpRequest) -> HttpResponseRedirect:
    """Browsers ask for it beside answers that name no icon."""
    return HttpResponseRedirect(static("ma/icon.svg"))


urls.register_pages()

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz/", health, name="health"),
    path("favicon.ico", favicon),
    path("i18n/", include("django.conf.urls.i18n")),
    path("api/v1/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/v1/docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    path("api/v1/", include("console.urls")),
    path("api/v1/", include("agents.urls")),
    path("api/v1/", include("failures.api.urls")),
    path("api/v1/", include("dlq.api.urls")),
    path("api/v1/", include("alerts.api.urls")),
    path("api/v1/", include("insights.api")),
    re_path(r"^api/(?P<path>.*)$", unknown_address),
    path("", admin.site.urls),
]

handler500 = "ma_site.requests.plain.server_error"
