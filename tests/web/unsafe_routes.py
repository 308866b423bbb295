"""The routes by which people change something: those of REST and of pages as they are approved, and the forms
of the admin."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client, RequestFactory

from tests.architecture.approval import FOLDER

UNSAFE = ("POST", "PUT", "PATCH", "DELETE")
PASSWORD = "correct horse battery"
# Of a place in an address.
ANYTHING = {"int": "1", "uuid": str(UUID(int=7))}


@dataclass(frozen=True)
class Ask:
    """A request that does what its route is for. `of` are the places of its address in their order, where
    they are known when it is sent, as functions. `first` comes before it."""

    route: str
    of: Sequence[object] = ()
    said: dict[str, Any] = field(default_factory=dict)
    first: "Ask | None" = None


def of_rest() -> Iterator[str]:
    """Without those that only the token of a server opens."""
    for line in (FOLDER / "rest.txt").read_text("utf-8").splitlines():
        method, path, who = line.split()[:3]
        if method in UNSAFE and "person" in who:
            yield f"{method} {path}"


def of_pages(client: Client) -> Iterator[str]:
    """A page that takes some methods only answers OPTIONS with them, whatever its address names."""
    for route in (FOLDER / "pages.txt").read_text("utf-8").splitlines():
        if "(" in route:  # the lists of the admin, and what leads elsewhere
            continue
        answer = client.options(
            "/" + re.sub(r"<(\w+):\w+>", lambda found: ANYTHING.get(found[1], "x"), route)
        )
        if "POST" in answer.headers.get("Allow", "POST"):
            yield f"POST /{route}"


def of_the_admin(person: User) -> Iterator[str]:
    """What `person` may do there; an action is a POST to the list of its rows."""
    request: Any = RequestFactory().post("/")
    request.user = person
    for model, forms in admin.site._registry.items():
        rows = f"POST /{model._meta.app_label}/{model._meta.model_name}/"
        if forms.has_add_permission(request):
            yield f"{rows}add/"
        if forms.has_change_permission(request):
            yield f"{rows}<id>/change/"
        if forms.has_delete_permission(request):
            yield f"{rows}<id>/delete/"
        if model is User:
            yield f"{rows}<id>/password/"
        yield from (f"{rows} {action}" for action in forms.get_actions(request))
