"""Describes what every route does unless it says otherwise: how long its lists are, and who may call it."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet
from rest_framework.pagination import CursorPagination, PageNumberPagination
from rest_framework.permissions import BasePermission
from rest_framework.request import Request


class Pages(PageNumberPagination):
    """`?page_size=` up to 1,000. Counts the rows: for what people make by hand."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000


class KeysetPages(CursorPagination):
    """The cost of a page does not grow with its number, and a row that comes in between moves nothing. In the
    `ordering` of the view."""

    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 500

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> tuple[str, ...]:
        return tuple(getattr(view, "ordering", self.ordering))


# -- who may do what: Django's model permissions, one per action, reading included ---------------------------


METHODS = {
    "GET": "view",
    "HEAD": "view",
    "OPTIONS": "view",
    "POST": "add",
    "PUT": "change",
    "PATCH": "change",
}
METHODS["DELETE"] = "delete"


# Asked with HEAD or OPTIONS, a route needs what the first of these that it takes needs.
STANDING_FOR = ("GET", "POST", "PUT", "PATCH", "DELETE")


def needed(view: Any, method: str) -> tuple[str, ...]:
    """The permissions of a call: `view.action_permissions[action or method]`, else the model's own for the
    method."""
    declared: dict[str, tuple[str, ...]] = getattr(view, "action_permissions", {})
    action = getattr(view, "action", None)
    if method in ("HEAD", "OPTIONS"):
        method = next((each for each in STANDING_FOR if hasattr(view, each.lower())), method)
        action = getattr(view, "action_map", {}).get(method.lower())
    for name in (action, method.lower()):
        if name in declared:
            return declared[name]
    queryset = getattr(view, "queryset", None)
    if queryset is None:
        raise ImproperlyConfigured(f"{type(view).__name__} declares no permission for {method}")
    meta = queryset.model._meta
    return (f"{meta.app_label}.{METHODS[method]}_{meta.model_name}",)


class PersonPermissions(BasePermission):
    """Everything needs a person with the permission; an unknown method is left to the view to refuse."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user: Any = request.user
        if not user or not user.is_authenticated:
            return False
        method = request.method or ""
        if method not in METHODS or not hasattr(view, method.lower()):
            return True
        return bool(user.has_perms(needed(view, method)))
