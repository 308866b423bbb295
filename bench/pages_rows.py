"""The rows of a large house, made by the database itself: 200 settings, 50 servers, a million ended
activations.

Each activation has one run and one change of the history; the newest of the settings that run on every server
have 50 runs. Every setting that is enabled has an open activation.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from console.reasons import NO_REASON, said

SETTINGS, SERVERS = 200, 50
# Of the settings: on every server; on one; the rest is disabled.
MANY, ANY = 40, 110
SECONDS_APART = 2


def make(activations: int, number_of_settings: int = SETTINGS, number_of_servers: int = SERVERS) -> None:
    """Into an empty, migrated database."""
    from django.db import connection, transaction

    with transaction.atomic():
        settings, servers = _places(number_of_settings, number_of_servers)
        _ended(activations, settings, servers)
        _open(settings, servers)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _places(number_of_settings: int, number_of_servers: int) -> tuple[list[int], list[int]]:
    from django.utils import timezone

    from agents.models import Destination, LaunchSetting, OfferedAgent, Pool, Server

    now = timezone.now()
    servers = [
        Server.objects.create(name=f"srv-{number:02}", last_seen_at=now)
        for number in range(number_of_servers)
    ]
    pool = Pool.objects.create(name="bench")
    pool.servers.add(*servers)
    OfferedAgent.objects.bulk_create(
        [OfferedAgent(server=each, name="bench.noop", kind="message", version="1") for each in servers]
    )
    destination = Destination.objects.create(name="bench")
    settings = LaunchSetting.objects.bulk_create(
        [
            LaunchSetting(
                key=f"setting-{number:03}",
                agent="bench.noop",
                pool=pool,
                destination=destination,
                spread="MANY" if number < MANY else "ANY",
                enabled=number < MANY + ANY,
                provision_state="ready",
                wanted_hash="made",
                provisioned_hash="made",
                disabled_reason=NO_REASON if number < MANY + ANY else said("not needed now"),
            )
            for number in range(number_of_settings)
        ]
    )
    return [each.pk for each in settings], [each.pk for each in servers]


def _ended(count: int, settings: list[int], servers: list[int]) -> None:
    from agents.models import Activation, Run, StateChange

    started, ended = instant("i", count), instant("i + 0.5", count)
    setting = f"{settings[0]} + i % {len(settings)}"
    fill(
        Activation,
        count,
        {
            "id": uuid_of("i"),
            "setting_id": setting,
            "state": "case i % 1000 when 0 then 'failed' when 1 then 'interrupted' when 2 then 'stopped' "
            "else 'succeeded' end",
            "started_at": started,
            "ended_at": ended,
            "last_epoch": "1",
        },
    )
    fill(
        Run,
        count,
        {
            "activation_id": uuid_of("i"),
            "server_id": f"{servers[0]} + i % {len(servers)}",
            "epoch": "1",
            "wanted": _false(),
            "state": "'finished'",
            "created_at": started,
            "closed_at": ended,
            "handled": "i % 5000",
        },
    )
    fill(
        StateChange,
        count,
        {
            "setting_id": setting,
            "activation_id": uuid_of("i"),
            "what": "'activation'",
            "old": "'running'",
            "new": "'succeeded'",
            "at": ended,
        },
    )


def _open(settings: list[int], servers: list[int]) -> None:
    from django.utils import timezone

    from agents.models import Activation, LaunchSetting, Run

    now = timezone.now()
    opened = Activation.objects.bulk_create(
        [
            # Mixed, and in each run alike: a list of the newest has as many runs.
            Activation(
                id=uuid5(NAMESPACE_OID, str(pk)),
                setting_id=pk,
                state="running",
                started_at=now,
                last_epoch=len(servers),
            )
            for pk in LaunchSetting.objects.filter(pk__in=settings, enabled=True).values_list("pk", flat=True)
        ]
    )
    Run.objects.bulk_create(
        [
            Run(
                activation=each,
                server_id=server,
                epoch=epoch,
                state="running",
                connected=True,
                reported_at=now,
            )
            for number, each in enumerate(opened)
            for epoch, server in enumerate(
                servers if number < MANY else servers[number % len(servers) :][:1], start=1
            )
        ]
    )


# -- SQL of both databases -----------------------------------------------------------------------------------


def fill(model: Any, count: int, values: Mapping[str, str]) -> None:
    """`values`: column → expression of `i`, from 1; every other column has the model's own default."""
    from django.db import connection

    columns, expressions, parameters = [], [], []
    for field in model._meta.concrete_fields:
        if field.primary_key and field.column not in values:
            continue
        columns.append(connection.ops.quote_name(field.column))
        if field.column in values:
            expressions.append(values[field.column].replace("%", "%%"))
        else:
            expressions.append("%s")
            parameters.append(field.get_db_prep_save(field.get_default(), connection))
    table = connection.ops.quote_name(model._meta.db_table)
    if connection.vendor == "postgresql":
        numbers = f"(select generate_series(1, {count}) as i) numbers"
    else:
        numbers = (
            f"(with recursive n(i) as (select 1 union all select i + 1 from n where i < "
            f"{count}) select i from n)"
        )
    with connection.cursor() as cursor:
        cursor.execute(
            f"insert into {table} ({', '.join(columns)}) select {', '.join(expressions)} from {numbers}",
            parameters,
        )


def uuid_of(number: str) -> str:
    from django.db import connection

    if connection.vendor == "postgresql":
        return f"lpad(to_hex({number}), 32, '0')::uuid"
    return f"printf('%032x', {number})"


def instant(number: str, count: int, apart: float = SECONDS_APART) -> str:
    """The last one is a minute ago; `apart`: seconds."""
    from django.db import connection

    began = datetime.now(UTC) - timedelta(seconds=60 + apart * count)
    text = began.strftime("%Y-%m-%d %H:%M:%S")
    if connection.vendor == "postgresql":
        return f"timestamptz '{text}+00' + ({number}) * interval '{apart} seconds'"
    return f"datetime('{text}', '+' || ({apart} * ({number})) || ' seconds')"


def _false() -> str:
    from django.db import connection

    return "false" if connection.vendor == "postgresql" else "0"
