"""Protocols of an activation in groups: by server, then by fingerprint."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Min
from django.http import HttpRequest
from django.utils.translation import gettext as _

from agents.models import Activation, LaunchSetting
from agents.pages.lists import counted
from agents.panels import Panel
from failures.models import FailureProtocol
from failures.pages.protocols import VIEW, protocols_url

GROUPS_PER_SERVER = 30
LATEST = 5


@dataclass(frozen=True, slots=True)
class Alike:
    """Failures with one fingerprint on one server; `example` is the latest of them."""

    count: int
    first_at: datetime
    last_at: datetime
    example: FailureProtocol
    url: str


@dataclass(frozen=True, slots=True)
class OfServer:
    name: str
    count: int
    groups: list[Alike]
    left_out: int
    url: str


def by_server(activation: UUID) -> list[OfServer]:
    """Largest groups first; one query and one for each example that is shown."""
    rows = (
        FailureProtocol.objects.filter(activation_uuid=activation)
        .order_by()
        .values("server_name", "fingerprint")
        .annotate(count=Count("pk"), first_at=Min("occurred_at"), last_at=Max("occurred_at"))
    )
    servers: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["server_name"], -row["count"], row["fingerprint"])):
        servers.setdefault(row["server_name"], []).append(dict(row))
    return [_of_server(activation, name, groups) for name, groups in servers.items()]


def _of_server(activation: UUID, name: str, rows: list[dict[str, Any]]) -> OfServer:
    shown = rows[:GROUPS_PER_SERVER]
    groups = []
    for row in shown:
        example = _example(activation, name, row)
        if example is not None:
            url = protocols_url(activation=activation, server=name, fingerprint=row["fingerprint"])
            groups.append(Alike(row["count"], row["first_at"], row["last_at"], example, url))
    total = sum(row["count"] for row in rows)
    return OfServer(name, total, groups, len(rows) - len(shown), protocols_url(activation=activation, server=name))


def _example(activation: UUID, server: str, row: dict[str, Any]) -> FailureProtocol | None:
    """The latest of the group; None when retention was faster."""
    alike = FailureProtocol.objects.filter(
        activation_uuid=activation, server_name=server, fingerprint=row["fingerprint"], occurred_at=row["last_at"]
    )
    return alike.defer("traceback", "properties").first()


def activation_panel(request: HttpRequest, activation: Activation) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    servers = by_server(activation.pk)
    context = {"servers": servers, "url": protocols_url(activation=activation.pk)}
    return {"title": _("Failures by server"), "template": "failures/by_server.html", "context": context}


def setting_panel(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    rows = FailureProtocol.objects.filter(setting=setting)
    latest = list(rows.order_by("-occurred_at").defer("traceback", "properties")[:LATEST])
    context = {"latest": latest, "total": counted(rows), "url": protocols_url(setting=setting.key)}
    return {"title": _("Latest failures"), "template": "failures/latest.html", "context": context}
