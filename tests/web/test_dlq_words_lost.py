"""Words that the index has lost: they are found again after it was built again."""

import subprocess

import pytest
from django.contrib.auth.models import User
from django.db import connection

from agents.models import LaunchSetting
from contract.typed import Typed
from dlq.models import DeadLetter
from tests.dlq.forked import Forked
from tests.web.letters import dead
from tests.web.reports import setting as make_orders
from tests.web.rows import api_client
from tests.web.test_retention_at_once import environ

pytestmark = [pytest.mark.process, pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

EMPTY = {
    "sqlite": "INSERT INTO dlq_words (dlq_words) VALUES ('delete-all')",
    "postgresql": "TRUNCATE dlq_words",
}
DAMAGE = {
    "sqlite": "DELETE FROM dlq_words_data WHERE id > 10",
    "postgresql": "UPDATE dlq_words SET words = 'nonsense'",
}


@pytest.fixture
def orders(db: None) -> LaunchSetting:
    return make_orders()


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


def run_sql(statements: dict[str, str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statements[connection.vendor])


def letter(number: int, text: str) -> DeadLetter:
    return dead("orders", number, f"ID:{number}", body=Typed("string", text))


def found(root: User, text: str) -> list[int]:
    """The broker's numbers of what REST finds by these words, as often as it finds them."""
    answer = api_client(root).get("/api/v1/dead-letters/", {"text": text})
    assert answer.status_code == 200, answer.content
    return sorted(each["orig_message_id"] for each in answer.json()["results"])


def manage(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return Forked(environ()).run(*arguments, **more)


@pytest.mark.parametrize("harm", [EMPTY, DAMAGE], ids=["emptied", "damaged"])
def test_words_that_were_lost_are_found_again(
    orders: LaunchSetting, root: User, harm: dict[str, str]
) -> None:
    for number in range(5):
        letter(number, f"parcel for customer {number}")
    assert found(root, "parcel") == [0, 1, 2, 3, 4]
    run_sql(harm)
    if harm is EMPTY:
        assert found(root, "parcel") == []

    done = manage("reindex")

    assert done.returncode == 0, done.stderr[-500:]
    assert "5 messages" in done.stdout
    assert found(root, "parcel") == [0, 1, 2, 3, 4] and found(root, "customer 3") == [3]
