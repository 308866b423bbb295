"""The description of the REST interface, in the frame of the site. The script of Swagger UI asks the same
address."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request


class ApiDocs(SpectacularSwaggerSplitView):
    """Whoever may read the schema may read it here; the navigation is that of the session."""

    person: Any = None

    def dispatch(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponseBase:
        """REST takes nobody by a session alone, and then forgets whose it is."""
        self.person = request.user
        answer: HttpResponseBase = super().dispatch(request, *args, **options)
        return answer

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **options: Any) -> HttpResponseBase:
        answer: Any = super().get(request, *args, **options)  # type: ignore[no-untyped-call]  # it has no types
        if "script" in request.GET:
            return answer  # type: ignore[no-any-return]  # the same
        request._request.user = self.person
        frame = admin.site.each_context(request._request)
        shown = {**frame, **answer.data, "title": _("REST API"), "section": "docs"}
        return TemplateResponse(request._request, self.template_name, shown)
