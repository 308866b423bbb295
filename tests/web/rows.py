"""Builders of rows and reports for the web tests."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from rest_framework.test import APIClient

from agents.models import Activation, Destination, LaunchSetting, OfferedAgent, Pool, ProvisionState, Server
from agents.provisioning.topology import wanted_hash
from agents.servers import admission
from agents.settings.enable import enable_setting
from console.audit.models import AuditEntry
from console.models import ApiToken
from contract import wire
from contract.messages import Heartbeat, RunReport, SpoolReport
from contract.messages import OfferedAgent as WireAgent
from contract.reasons import Reason
from ma_site import demo

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def make_roles() -> None:
    """As the site makes them, without what is then in the audit."""
    demo.make_groups()
    QuerySet(AuditEntry).filter(action="role.create").delete()


def make_person(name: str, group: str = "") -> User:
    user = User.objects.create_user(name, password="not-a-secret-in-tests", is_staff=True)
    if group:
        user.groups.add(Group.objects.get(name=group))
    return user


def api_client(who: User | Server | None = None) -> APIClient:
    """A client that brings the token of a person or a server, or none."""
    client = APIClient(raise_request_exception=False)
    now = datetime.now(UTC)
    if isinstance(who, Server):
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {admission.issue_server_token(who, now=now)}")
    elif who is not None:
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {ApiToken.issue(who, 'test', now=now)}")
    return client


def activate(setting: LaunchSetting, by: User | None, now: datetime, **options: Any) -> Activation:
    """Enables it, and what that begins at once."""
    activation = enable_setting(setting, by, now, **options)
    assert activation is not None
    return activation


def make_setting(pool: Pool, key: str = "orders", **fields: Any) -> LaunchSetting:
    """A setting that is ready on the broker, unless told otherwise."""
    destination = None
    if fields.get("kind") != "standalone":
        destination, _ = Destination.objects.get_or_create(name=fields.pop("address", "demo.orders"))
    facts = {name: fields.pop(name) for name in ("provision_state", "provisioned_hash") if name in fields}
    setting = LaunchSetting(
        key=key, pool=pool, **{"agent": "demo.orders", "destination": destination, **fields}
    )
    setting.wanted_hash = wanted_hash(setting)
    setting.provisioned_hash = facts.get("provisioned_hash", setting.wanted_hash)
    setting.provision_state = facts.get("provision_state", ProvisionState.READY)
    setting.save()
    return setting


def make_alive(*servers: Server, now: datetime, agents: tuple[str, ...] = ("demo.orders",)) -> None:
    """Last seen at `now`, offering the agents."""
    for server in servers:
        server.last_seen_at = now
        server.save(update_fields=["last_seen_at"])
        for agent in agents:
            OfferedAgent.objects.get_or_create(server=server, name=agent, defaults={"kind": "message"})


def heartbeat(
    server: str,
    *runs: RunReport,
    sent_at: datetime = NOW,
    boot: UUID | None = None,
    agents: tuple[str, ...] = ("demo.orders",),
    spool: SpoolReport | None = None,
    problems: tuple[Reason, ...] = (),
    desired_version: str = "",
) -> Heartbeat:
    return Heartbeat(
        server=server,
        boot=boot or uuid4(),
        sent_at=sent_at,
        kma_version="1.0",
        desired_version=desired_version,
        agents=tuple(WireAgent(name=name, kind="message") for name in agents),
        runs=tuple(runs),
        spool=spool or SpoolReport(limit_bytes=1000),
        problems=problems,
    )


def heartbeat_json(server: str, *runs: RunReport, **more: Any) -> Any:
    return wire.dump(heartbeat(server, *runs, **more))
