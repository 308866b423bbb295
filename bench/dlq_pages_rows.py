"""A million dead letters in the index, made by the database itself, with the product's own tables and
indexes.

100 settings; six of ten letters are of one. Each has 40 faults of uneven sizes; 50 servers; one activation in
20,000 letters; one letter of ten was given back. Words and properties as the product stores them.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

SETTINGS, LARGE = 100, "bench-000"
FAULTS, SERVERS, REGIONS, CUSTOMERS = 40, 50, ("north", "south", "east", "west"), 5_000
SPREAD_OVER = timedelta(days=30)
# One message, as long as the feed's.
BODY_BYTES = 800


def make(count: int) -> None:
    """Into an empty, migrated database. Indexes are made afterwards, which takes a tenth of the time."""
    from django.db import connection

    from dlq.models import DeadLetter

    _settings()
    with connection.schema_editor() as editor:
        for index in DeadLetter._meta.indexes:
            editor.remove_index(DeadLetter, index)
    _letters(count)
    _words(count)
    with connection.schema_editor() as editor:
        for index in DeadLetter._meta.indexes:
            editor.add_index(DeadLetter, index)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


def _settings() -> None:
    from agents.models import Destination, LaunchSetting, Pool

    pool = Pool.objects.create(name="bench")
    destination = Destination.objects.create(name="bench")
    LaunchSetting.objects.bulk_create(
        [
            LaunchSetting(
                key=f"bench-{number:03}",
                agent="bench.noop",
                pool=pool,
                destination=destination,
                provision_state="ready",
                wanted_hash="made",
                provisioned_hash="made",
            )
            for number in range(SETTINGS)
        ]
    )


def _letters(count: int) -> None:
    from bench.pages_rows import fill, uuid_of
    from broker.amqp.codec import encode
    from broker.port import Message
    from contract.typed import Typed
    from dlq.models import DeadLetter, LetterContent

    properties = {"region": Typed("string", "north"), "tenant": Typed("int", 7)}
    encoded = encode(Message(body=Typed("string", '{"order": 1}'.ljust(BODY_BYTES)), properties=properties))
    key = (
        f"(case when i % 10 < 6 then '{LARGE}' else 'bench-' || {_padded(f'1 + i % {SETTINGS - 1}', 3)} end)"
    )
    fault = f"((i % {FAULTS}) * ((i / {FAULTS}) % 37) / 37)"
    message = f"('ID:' || {_padded('i', 9)})"
    typed = (
        '[{"name": "region", "type": "string", "value": "north"}, {"name": "tenant", '
        '"type": "int", "value": 7}]'
    )
    seen = _instant("i", count)
    values = {
        "node_id": "'node-1'",
        "queue": f"'DLQ.' || {key}",
        "orig_message_id": "i",
        "setting_key": key,
        "address": "'bench'",
        "orig_queue": key,
        "message_key": message,
        "message_id": message,
        "body_kind": "'value'",
        "size": str(len(encoded)),
        "delivery_count": "1 + i % 7",
        "fingerprint": f"'v1:' || {_padded(fault, 16)}",
        "exception_type": f"'shop.errors.Error' || ({fault} / 2)",
        "place": f"'shop/export.py:' || {fault}",
        "server_name": f"'srv-' || {_padded(f'i % {SERVERS}', 2)}",
        "activation_uuid": uuid_of("(1 + i / 20000)"),
        "agent_version": "'2.4.' || (i % 3)",
        "protocol_at": seen,
        "seen_at": seen,
        "state": "case when i % 10 = 3 then 'given_back' else 'dead' end",
        "state_at": seen,
        "chapter": "1 + (i % 20) / 18",
        "words_without": f"'{_nothing_left_out()}'",
    }
    fill(DeadLetter, count, values)
    content = {
        "letter_id": "i",
        "encoded": _bytes(encoded),
        "body_text": f'\'{{"order": \' || i || \', "customer": "c\' || (i % {CUSTOMERS}) '
        + '|| \'", "note": "export"}\'',
        "properties": _json(typed),
    }
    fill(LetterContent, count, content)


def _words(count: int) -> None:
    """As `dlq.search.word_index` writes them: words, and one for each property with its value."""
    from django.db import connection

    from dlq.search.words import TABLE, pair_word

    table = TABLE
    regions = " ".join(f"when {n} then '{pair_word('region', name)}'" for n, name in enumerate(REGIONS))
    words = [
        f"(case l.id % {len(REGIONS)} {regions} end)", f"'{pair_word('tenant', '7')}'", "'order'", "l.id",
        "'customer'", f"'c' || (l.id % {CUSTOMERS})", "'note'", "'export'", "'7'",
    ]  # fmt: skip
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"DROP INDEX {table}_of_letters")
            joined = " || ' ' || ".join(f"quote_literal({each})" for each in words)
            cursor.execute(f"INSERT INTO {table} (letter_id, words) SELECT l.id, ({joined})::tsvector "
                           "FROM dlq_deadletter l")  # fmt: skip
            cursor.execute(f"CREATE INDEX {table}_of_letters ON {table} USING gin (words)")
        else:
            joined = " || ' ' || ".join(words)
            cursor.execute(
                f"INSERT INTO {table} (rowid, words) SELECT l.id, {joined} FROM dlq_deadletter l ORDER BY 1"
            )


# -- SQL of both databases -----------------------------------------------------------------------------------


def _padded(number: str, digits: int) -> str:
    from django.db import connection

    if connection.vendor == "postgresql":
        return f"lpad(({number})::text, {digits}, '0')"
    return f"printf('%0{digits}d', {number})"


def _bytes(value: bytes) -> str:
    from django.db import connection

    return f"'\\x{value.hex()}'::bytea" if connection.vendor == "postgresql" else f"x'{value.hex()}'"


def _json(text: str) -> str:
    from django.db import connection

    return f"'{text}'::jsonb" if connection.vendor == "postgresql" else f"'{text}'"


def _instant(number: str, count: int) -> str:
    """Spread evenly; the last one is a minute ago."""
    from django.db import connection

    step = SPREAD_OVER.total_seconds() / count
    began = datetime.now(UTC) - timedelta(seconds=60) - SPREAD_OVER
    text = began.strftime("%Y-%m-%d %H:%M:%S")
    if connection.vendor == "postgresql":
        return f"timestamptz '{text}+00' + ({number}) * interval '{step} seconds'"
    return f"strftime('%Y-%m-%d %H:%M:%f', '{text}', '+' || ({step} * ({number})) || ' seconds')"


def _nothing_left_out() -> Any:
    from dlq.search.word_index import masked_names_digest

    return masked_names_digest(())
