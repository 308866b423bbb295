"""/livez and /readyz for whoever starts, stops and balances: one word each, to anybody, under any host name.
Details are on /healthz/ and *Health*, for those who may see servers."""

from collections.abc import Callable

from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, HttpResponseBase

Answer = Callable[[HttpRequest], HttpResponseBase]
PATHS = ("/livez", "/readyz")


class Probes:
    """Before everything that asks for a host name or the database."""

    def __init__(self, get_response: Answer) -> None:
        self._get_response = get_response
        self._migrated = False

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info not in PATHS:
            return self._get_response(request)
        if request.method not in ("GET", "HEAD"):
            return _said("method not allowed", 405)
        if request.path_info == "/livez" or self._is_ready():
            return _said("ok", 200)
        return _said("unavailable", 503)

    def _is_ready(self) -> bool:
        """The database answers, and has the tables of this version. That is looked at until it is so."""
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            if not self._migrated:
                executor = MigrationExecutor(connection)
                self._migrated = not executor.migration_plan(executor.loader.graph.leaf_nodes())
        except (DatabaseError, InterfaceError):
            connection.close()
            return False
        return self._migrated


def _said(word: str, status: int) -> HttpResponse:
    answer = HttpResponse(f"{word}\n", content_type="text/plain; charset=utf-8", status=status)
    answer["Cache-Control"] = "no-store"
    return answer
