"""The one admin site that is the whole web interface: its index is the operations overview."""

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.translation import gettext_lazy as _

from console.ui.page import urls


class OperationsSite(AdminSite):
    site_title = _("MA")
    site_header = _("Message agents")
    index_title = _("Overview")
    empty_value_display = "—"
    enable_nav_sidebar = False
    site_url = None

    def get_urls(self) -> list[URLResolver | URLPattern]:
        """Consoles first: the admin's own last address takes everything."""
        records = path("records/", self.admin_view(self.records), name="records")
        return [*urls(self.admin_view), records, *super().get_urls()]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        from ma_site.pages.overview import overview  # needs the apps, which need this site

        return overview(request)

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        if request.method != "POST":
            return super().login(request, extra_context)
        from ma_site.requests.sign_in import throttled  # needs the apps, which need this site

        return throttled(request, lambda: super(OperationsSite, self).login(request, extra_context))

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        from ma_site.admin import PasswordChange  # needs the apps, which need this site

        shown = {**self.each_context(request), **(extra_context or {})}
        request.current_app = self.name
        done = reverse("admin:password_change_done")
        return PasswordChange.as_view(success_url=done, extra_context=shown)(request)

    def records(self, request: HttpRequest) -> TemplateResponse:
        """The admin's own index: every kind of row that this person may see."""
        return super().index(request, {"title": _("Administration"), "section": "records"})
