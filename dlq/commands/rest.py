"""Questions to the REST interface without a network: the same views, in the name of a person."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.core.handlers.wsgi import WSGIRequest
from django.core.management.base import CommandError
from django.urls import Resolver404, resolve
from rest_framework.exceptions import APIException

from console.operations.rest import as_problems
from console.rest.errors import answer
from dlq.terminal import safe

ROOT = "/api/v1/"
LONGEST = 500
# Of an error, beside those for which there are words.
TOLD = ("error", "detail", "where", "what_to_do")
REFUSED = 1


class Refused(CommandError):
    """What the interface answered instead: `told` is its body."""

    def __init__(self, told: Any) -> None:
        super().__init__(words(told), returncode=REFUSED)
        self.told = told if isinstance(told, dict) else {}


def person_named(name: str) -> User:
    person = User.objects.filter(username=name, is_active=True).first()
    if person is None:
        raise CommandError(f"There is no active user {name!r}.")
    return person


@contextmanager
def as_refused(where: str) -> Iterator[None]:
    """What an operation refuses, as the interface would answer it. Raises Refused."""
    try:
        with as_problems(where):
            yield
    except (APIException, PermissionDenied) as error:
        raise Refused(answer(error, {}).data) from error


@contextmanager
def about_setting(key: str | None) -> Iterator[None]:
    """Says of a setting that is not there, or not for this person, which one that is."""
    try:
        yield
    except Refused as refused:
        if not key or refused.told.get("error") != "not_found":
            raise
        detail = f"There is no setting {safe(key, LONGEST)!r} for this person."
        more = {"detail": detail, "where": "setting", "what_to_do": "./ma manage settings list shows them."}
        raise Refused(refused.told | more) from refused


def ask(person: User, method: str, path: str, data: Any = None, **query: Any) -> Any:
    """The answer's data. `path` is that below /api/v1/. Raises Refused."""
    body = b"" if data is None else json.dumps(data, default=str).encode()
    asked = urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
    request = WSGIRequest(
        {
            "REQUEST_METHOD": method,
            "PATH_INFO": ROOT + path,
            "QUERY_STRING": asked,
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_HOST": _host(),
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "wsgi.input": BytesIO(body),
            "wsgi.url_scheme": "http",
        }
    )
    request._force_auth_user = person  # type: ignore[attr-defined]  # as Django REST framework looks for it
    try:
        view = resolve(ROOT + path)
    except Resolver404 as error:
        raise CommandError(f"There is no address {ROOT}{safe(path, LONGEST)}.") from error
    response = view.func(request, *view.args, **view.kwargs)
    if getattr(response, "streaming", False):
        raise CommandError("The answer is a file: ./ma manage dlq export writes such.")
    # Plain values, as another process would read them.
    content = response.render().content if hasattr(response, "render") else response.content
    told = json.loads(content) if content else {}
    if response.status_code >= 400:
        raise Refused(told)
    return told


def words(told: Any) -> str:
    """An error in one line."""
    if not isinstance(told, dict):
        return safe(json.dumps(told, default=str), LONGEST)
    where = str(told.get("where", ""))
    begin = (
        f"{where}: {told.get('detail', '')}"
        if where and told.get("error") == "invalid"
        else told.get("detail", "")
    )
    more = [f"{name}: {_short(value)}" for name, value in told.items() if name not in TOLD and value]
    return " ".join(safe(str(each), LONGEST) for each in (begin, told.get("what_to_do", ""), *more) if each)


def _short(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _host() -> str:
    """One that links in answers may name."""
    host = next(iter(settings.ALLOWED_HOSTS), "localhost").lstrip(".")
    return "localhost" if host == "*" else host
