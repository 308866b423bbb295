"""However many deliveries have ended: what lists, looks up and passes on reads an index; and pages know what
servers say of ends."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.acknowledgements import answers
from agents.models import Acknowledgement, LaunchSetting, Pool, Server
from retention.ages.limits import AGE_LIMITS, ANSWERS
from tests.web.rows import api_client, make_setting

pytestmark = pytest.mark.both_databases

ENDED, OPEN = 20_000, 200


@pytest.fixture
def many(pool: Pool, server: Server) -> LaunchSetting:
    """A busy setting, and one of which three ended long ago."""
    busy = make_setting(pool, "busy", mode="CLIENT", enabled=True)
    rare = make_setting(pool, "rare", mode="CLIENT", enabled=True)
    now = timezone.now()

    def row(number: int, setting: LaunchSetting, ended: bool) -> Acknowledgement:
        at = now - timedelta(seconds=number)
        state = ("committed", "committed", "rolled_back", "expired")[number % 4] if ended else "open"
        return Acknowledgement(
            acknowledgement=f"{setting.key}.{number}", setting=setting, server=server,
            activation_uuid=uuid.uuid4(),
            epoch=1,
            jms_message_id=f"ID:{number}", state=state, opened_at=at, created_at=at,
            ended_at=at if ended else None,
            opened_record=uuid.uuid4(), ended_record=uuid.uuid4() if ended else None,
        )  # fmt: skip

    rows = [row(number, busy, number >= OPEN) for number in range(ENDED)]
    rows += [row(ENDED + number, rare, True) for number in range(3)]
    Acknowledgement.objects.bulk_create(rows, batch_size=2000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if connection.vendor == "sqlite" else "ANALYZE agents_acknowledgement")
    return busy


def read_whole(step: Callable[[], Any]) -> list[str]:
    """Plans of the questions of `step` that read all rows of the table, one after the other."""
    found = []
    with CaptureQueriesContext(connection) as asked:
        step()
    with connection.cursor() as cursor:
        for query in asked.captured_queries:
            if query["sql"].startswith("SELECT") and 'FROM "agents_acknowledgement"' in query["sql"]:
                cursor.execute(
                    ("EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN ") + query["sql"]
                )
                plan = "\n".join(str(line) for line in cursor.fetchall())
                found.append(plan)
    assert found, "it asks nothing of the table"
    wholly = ("SCAN agents_acknowledgement'", "Seq Scan on agents_acknowledgement")
    return [plan for plan in found if any(word in plan for word in wholly)]


def test_no_list_and_no_look_up_reads_what_has_ended(
    many: LaunchSetting, operator: User, server: Server
) -> None:
    browser, rest = Client(), api_client(operator)
    browser.force_login(operator)
    old = timezone.now() - timedelta(seconds=ENDED - 5)
    (aged,) = (each for each in AGE_LIMITS if each.what == ANSWERS)

    def got(client: Any, path: str) -> Callable[[], None]:
        def get() -> None:
            assert client.get(path).status_code == 200, path

        return get

    steps = {
        "outstanding": lambda: answers.outstanding("busy", "ID:7"),
        "passed on": lambda: answers.to_pass_on(server),
        "aged": lambda: aged.pick(old, 100),
        **{
            path: got(browser, path)
            for path in (
                "/answers/", "/answers/?setting=busy", "/answers/?state=ended",
                "/answers/?state=ended&setting=rare",
                "/settings/busy/", "/",
            )
        },
        **{
            f"rest {query}": got(rest, f"/api/v1/acknowledgements/?{query}")
            for query in (
                "", "setting=busy", "jms_message_id=ID:7", "setting=busy&jms_message_id=ID:7", "state=lost",
                "state=expired", "state=committed&jms_message_id=ID:777",
            )
        },
    }  # fmt: skip
    slow = {name: plans for name, step in steps.items() if (plans := read_whole(step))}
    assert not slow
