"""Nothing slow happens inside a transaction of the product: what the watch of all tests sees, and who was
caught."""

import os

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from agents.models import LaunchSetting, Pool
from agents.provisioning.provision import provision_due
from broker.memory.broker import MemoryBroker
from console import broker as broker_service
from tests import slow_calls
from tests.web.rows import NOW, make_setting

SLOW = {
    "sleeps": "import time; time.sleep(0.001)",
    "socket.connect": "import socket\n"
    "with socket.create_server(('127.0.0.1', 0)) as s, socket.create_connection(s.getsockname()): pass",
    "socket.sendall": "import socket\na, b = socket.socketpair()\nwith a, b: a.sendall(b'x')",
    "starts a process": "import subprocess, sys; subprocess.run([sys.executable, '-c', ''])",
    "writes to": "import os, tempfile; tempfile.TemporaryFile().close()",
    "calls MemoryManagement": "from broker.memory.broker import MemoryBroker\n"
    "MemoryBroker().management().attribute('broker', 'NodeID')",
}


def run_as_product(code: str) -> list[str]:
    exec(compile(code, str(slow_calls.REPOSITORY / "dlq" / "none_such.py"), "exec"), {})
    return slow_calls.take()


@pytest.mark.process
@pytest.mark.parametrize("what", SLOW)
def test_what_is_slow_is_seen_inside_a_transaction_and_only_there(db: None, what: str) -> None:
    assert run_as_product(SLOW[what]) == []
    with transaction.atomic():
        found = run_as_product(SLOW[what])
    assert found and what in "".join(found) and "none_such.py" in found[0]


@pytest.fixture
def made(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> LaunchSetting:
    """A setting with its queues, on a broker in memory that holds a message for it."""
    broker = MemoryBroker()
    monkeypatch.setattr(broker_service, "_connection", broker.management())
    monkeypatch.setattr(broker_service, "_process", os.getpid())
    setting = make_setting(pool, provision_state="pending", provisioned_hash="")
    provision_due(NOW)
    return setting


@pytest.fixture
def root(made: LaunchSetting, client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root", password=None))
    return client


def test_removing_a_setting_asks_the_broker_outside_of_its_transaction(
    made: LaunchSetting, root: Client
) -> None:
    answer = root.post(f"/settings/{made.key}/remove/")
    assert answer.status_code == 302
    assert slow_calls.take() == []
    assert not LaunchSetting.objects.exists()
