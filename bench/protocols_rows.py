"""The rows of a large house of failures, made by PostgreSQL itself: 200 settings, 20 servers, 50 activations
of each setting, 20 kinds of failures of each; and what is counted of them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from bench.pages_rows import fill

SETTINGS, SERVERS, ACTIVATIONS, KINDS = 200, 20, 50, 20
# Protocols of a setting that a turn of retention takes away: these finished well.
WELL = 20
SPAN = timedelta(days=60)
TABLE = "failures_failureprotocol"


def make(rows: int) -> None:
    """Into an empty, migrated database. As they would have come: in the order of time, the settings mixed. A
    share of the settings is a share of the rows. Indexes are made after the rows, as one would."""
    from django.db import connection

    _places()
    with connection.cursor() as cursor:
        cursor.execute("select indexdef, indexname from pg_indexes where tablename = %s", [TABLE])
        indexes = [(made, name) for made, name in cursor.fetchall() if "UNIQUE" not in made]
        for _made, name in indexes:
            cursor.execute(f'drop index "{name}"')
        _protocols(rows)
        for made, _name in indexes:
            cursor.execute(made)
        _counts(cursor)
        cursor.execute("vacuum analyze")


def make_few(rows: int) -> None:
    """The same, smaller in all but the settings, row by row: for a database that does not make them itself.
    Nothing is counted of them."""
    from django.db import transaction

    from console.database import bulk

    _places()
    with transaction.atomic():
        for first in range(1, rows + 1, 5000):
            bulk.insert_rows([_protocol(each, rows) for each in range(first, min(first + 5000, rows + 1))])


def _protocol(each: int, rows: int) -> Any:
    from failures.models import FailureProtocol

    setting, of = each * 7919 % SETTINGS, (each - 1) * ACTIVATIONS // rows
    activation = UUID(f"{(setting + 1) * 1000 + of:032x}")
    server, kind = each * 13 // SETTINGS % SERVERS, each * 31 // (SETTINGS * ACTIVATIONS) % KINDS
    at = datetime.now(UTC) - SPAN + SPAN * (of + 0.8 * ((each - 1) * ACTIVATIONS % rows) / rows) / ACTIVATIONS
    return FailureProtocol(
        id=UUID(int=each),
        spool=UUID(int=server + 1),
        number=each,
        setting_id=setting + 1,
        setting_key=f"setting-{setting:03}",
        activation_id=activation,
        activation_uuid=activation,
        epoch=1,
        server_id=server + 1,
        server_name=f"srv-{server:02}",
        agent="bench.fail",
        outcome="raised",
        exception_type=f"shop.errors.Error{kind}",
        exception_text=f"order {each} has no currency",
        traceback=f"{each:032x}\n" * 12,
        fingerprint=f"v1:{setting * 100 + kind:016x}",
        place=f"part{kind}.py:step",
        message_key=f"ID:{each // 4}",
        attempt=each % 4 + 1,
        occurred_at=at,
        received_at=at,
    )


def _places() -> None:
    from django.core.management.color import no_style
    from django.db import connection

    from agents.models import Activation, Destination, LaunchSetting, Pool, Run, RunPhase, Server

    began = datetime.now(UTC) - SPAN
    pool, destination = Pool.objects.create(name="bench"), Destination.objects.create(name="bench")
    servers = Server.objects.bulk_create([Server(pk=n + 1, name=f"srv-{n:02}") for n in range(SERVERS)])
    pool.servers.set(servers)
    settings = LaunchSetting.objects.bulk_create(
        [
            LaunchSetting(
                pk=n + 1,
                key=f"setting-{n:03}",
                agent="bench.fail",
                pool=pool,
                destination=destination,
                retention_days=None if n < WELL else 3650,
            )
            for n in range(SETTINGS)
        ]
    )
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), [Server, LaunchSetting]):
            cursor.execute(statement)
    activations = Activation.objects.bulk_create(
        [
            Activation(
                pk=f"{setting.pk * 1000 + n:032x}",
                setting=setting,
                number=n + 1,
                state="succeeded" if setting.pk <= WELL else "failed",
                well=setting.pk <= WELL,
                started_at=began + SPAN * n / ACTIVATIONS,
                ended_at=began + SPAN * (n + 0.9) / ACTIVATIONS,
            )
            for setting in settings
            for n in range(ACTIVATIONS)
        ],
        batch_size=1000,
    )
    Run.objects.bulk_create(
        [
            Run(
                activation=each,
                server=server,
                epoch=1,
                state=RunPhase.FINISHED,
                closed_at=each.ended_at,
                handled=5000,
                failed=50,
            )
            for each in activations
            for server in servers
        ],
        batch_size=5000,
    )


def _protocols(rows: int) -> None:
    from failures.models import FailureProtocol

    setting = f"(i::bigint * 7919 % {SETTINGS})"
    activation = f"((i::bigint - 1) * {ACTIVATIONS} / {rows})"
    # Within the time of its activation.
    at = (
        f"now() - interval '{int(SPAN.total_seconds())} s' + interval "
        f"'{SPAN.total_seconds() / ACTIVATIONS:.3f} s' "
        f"* ({activation} + 0.8 * ((i::bigint - 1) * {ACTIVATIONS} % {rows}) / {rows}.0)"
    )
    kind = f"((i::bigint * 31 / {SETTINGS * ACTIVATIONS}) % {KINDS})"
    fill(
        FailureProtocol,
        rows,
        {
            "id": "md5(i::text)::uuid",
            "spool": f"lpad(to_hex(i % {SERVERS}), 32, '0')::uuid",
            "number": "i",
            "setting_id": f"{setting} + 1",
            "setting_key": f"'setting-' || lpad(({setting})::text, 3, '0')",
            "activation_id": f"lpad(to_hex(({setting} + 1) * 1000 + {activation}), 32, '0')::uuid",
            "activation_uuid": f"lpad(to_hex(({setting} + 1) * 1000 + {activation}), 32, '0')::uuid",
            "epoch": "1",
            "server_id": f"(i::bigint * 13 / {SETTINGS}) % {SERVERS} + 1",
            "server_name": f"'srv-' || lpad(((i::bigint * 13 / {SETTINGS}) % {SERVERS})::text, 2, '0')",
            "agent": "'bench.fail'",
            "outcome": "'raised'",
            "exception_type": f"'shop.errors.Error' || {kind}",
            "exception_text": "'order ' || (i::bigint * 104729 % 999983) || ' has no currency'",
            "traceback": "repeat(md5(i::text) || E'\\n', 12)",
            "fingerprint": f"'v1:' || lpad(to_hex(({setting}) * 100 + {kind}), 16, '0')",
            "place": f"'part' || {kind} || '.py:step'",
            "message_key": "'ID:' || (i / 4)",
            "queue": f"'setting-' || lpad(({setting})::text, 3, '0')",
            "destination": "'bench'",
            "attempt": "i % 4 + 1",
            "occurred_at": at,
            "received_at": at,
        },
    )


def _counts(cursor: Any) -> None:
    """As folding would have left them."""
    run = cursor.execute
    ends = "count(*), min(occurred_at), max(occurred_at), (array_agg(id))[1]"
    facts = "max(exception_type), max(place), 'order <n> has no currency'"
    run(
        "insert into failures_failuregroup (activation_uuid, setting_key, server_name, fingerprint, count, "
        "first_at, "
        "last_at, latest, exception_type, place, headline, agent_version, temporary) "
        f"select activation_uuid, setting_key, server_name, fingerprint, {ends}, {facts}, '', false "
        f"from {TABLE} group by 1, 2, 3, 4"
    )
    run(
        "insert into failures_fingerprinthour (fingerprint, setting_key, hour, count) "
        f"select fingerprint, setting_key, date_trunc('hour', occurred_at), count(*) from {TABLE} group by "
        f"1, 2, 3"
    )
    run(
        "insert into failures_fingerprint (fingerprint, count, first_at, last_at, latest, exception_type, "
        "place, "
        "headline, recent_at, received_at, part_setting) "
        f"select fingerprint, {ends}, {facts}, max(occurred_at), min(received_at), '' from {TABLE} group by 1"
    )
