"""Asking for health costs nobody anything while the broker is frozen: with the real broker and the real
gunicorn."""

import signal
import threading

import pytest

from tests.services import ArtemisService
from tests.web.real_site import real_site

pytestmark = pytest.mark.django_db(transaction=True)
HOST = {"Host": "testserver"}


def test_twelve_who_ask_for_health_of_a_frozen_broker_delay_nobody(artemis: ArtemisService) -> None:
    account = artemis.accounts["ma-ops"]
    with real_site(
        MA_STOMP_ADDRESS=f"127.0.0.1:{artemis.ports.stomp}",
        MA_BROKER_USER=account.user,
        MA_BROKER_PASSWORD=account.password,
    ) as site:
        assert site.status("GET", "/healthz/", headers=HOST) == 200
        assert artemis.process is not None
        artemis.process.send_signal(signal.SIGSTOP)
        try:
            found: list[int | None] = []
            asking = [
                threading.Thread(target=lambda: found.append(site.status("GET", "/healthz/", headers=HOST)))
                for _ in range(12)
            ]
            for thread in asking:
                thread.start()
            assert site.status("GET", "/login/", headers=HOST) == 200
            for thread in asking:
                thread.join()
        finally:
            artemis.process.send_signal(signal.SIGCONT)

    assert found == [200] * 12
