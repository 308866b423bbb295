"""What an error shows beside its words: the id of its request, which each line of the log has, and the
permissions that are missing."""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.core.exceptions import PermissionDenied
from django.utils.translation import gettext
from structlog.contextvars import bound_contextvars, get_contextvars

# Of the lines of the log.
KEY = "request_id"


@contextmanager
def new_request_id() -> Iterator[str]:
    """While a request is answered. What it sends is not asked: anybody could write into the log by it."""
    request_id = uuid.uuid4().hex[:12]
    with bound_contextvars(**{KEY: request_id}):
        yield request_id


def request_id() -> str:
    """Returns the id of the request that is being answered; empty outside of one, as in a command."""
    return str(get_contextvars().get(KEY, ""))


class Missing(str):
    """A sentence that says which right is missing, with the permissions that would give it everywhere."""

    permissions: tuple[str, ...]

    def __new__(cls, sentence: str, *permissions: str) -> "Missing":
        made = super().__new__(cls, sentence)
        made.permissions = permissions
        return made


class MissingPermission(PermissionDenied):
    """This person has none of these permissions where they are needed, as `app.codename`."""

    def __init__(self, *permissions: str) -> None:
        super().__init__()
        self.permissions = permissions


def missing_permissions(error: Any) -> list[tuple[str, str]]:
    """Returns each with its words and its name."""
    return [(permission_words(name), name) for name in getattr(error, "permissions", ())]


def missing_in_english(permissions: Iterable[str]) -> str:
    """For programs."""
    names = ", ".join(permissions)
    return f"You do not have permission to perform this action{f': {names} is missing' if names else ''}."


def permission_words(name: Any) -> str:
    """Returns `app.codename` in the reader's language: the database keeps English words. What the code does
    not know is shown as it is named."""
    app_label, _dot, codename = str(name).partition(".")
    action, _line, model_name = codename.partition("_")
    words = {
        "add": gettext("Can add %(kind)s"),
        "change": gettext("Can change %(kind)s"),
        "delete": gettext("Can delete %(kind)s"),
        "view": gettext("Can view %(kind)s"),
    }
    for model in apps.get_app_config(app_label).get_models() if app_label in apps.app_configs else ():
        options = model._meta
        if options.model_name == model_name and action in words:
            return words[action] % {"kind": options.verbose_name_plural}
        if codename in (own := dict(options.permissions)):
            return str(own[codename])
    return str(name)
