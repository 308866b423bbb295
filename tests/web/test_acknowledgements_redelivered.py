"""A delivery whose server is not heard any more ends when its message was delivered again elsewhere."""

from copy import copy
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Acknowledgement, Pool, Run, Server
from agents.reasons import DELIVERED_AGAIN
from agents.reconciler import keep_up
from contract.acknowledgements import EndState
from tests.web.rows import api_client, make_alive
from tests.web.test_acknowledgements import House, post, row

pytestmark = pytest.mark.both_databases

SILENT = timedelta(hours=1)


@pytest.fixture
def house(pool: Pool, server: Server) -> House:
    return House(pool, server)


@pytest.fixture
def other(house: House, pool: Pool) -> House:
    """The same activation on another server, which is heard."""
    server = Server.objects.create(name="other")
    pool.servers.add(server)
    make_alive(server, now=timezone.now())
    second = copy(house)
    second.server, second.spool = server, uuid4()
    second.run = Run.objects.create(activation=house.activation, server=server, epoch=2)
    return second


def silence(house: House) -> None:
    Server.objects.filter(pk=house.server.pk).update(last_seen_at=timezone.now() - SILENT)


def again(other: House) -> Acknowledgement:
    """The same message waits on the other server."""
    known = other.id(2)
    other.store(other.opened(known))
    return row(known)


def test_it_is_lost_once_its_message_waits_elsewhere(house: House, other: House, operator: User) -> None:
    known = house.id()
    house.store(house.opened(known))
    silence(house)
    keep_up(timezone.now())
    assert row(known).state == "open", "its server may still hold it"

    second = again(other)
    keep_up(timezone.now())
    assert (row(known).state, row(known).reason) == ("lost", DELIVERED_AGAIN()) and row(
        known
    ).ended_at is not None
    assert row(second.acknowledgement).state == "open"
    assert post(api_client(operator), known).status_code == 410
    wish = {"setting": "answers", "jms_message_id": second.jms_message_id, "action": "ROLLBACK"}
    answer = api_client(operator).post("/api/v1/acknowledgements/", wish)
    assert answer.json()["acknowledgement"] == second.acknowledgement, "it is the only one that waits"

    house.store(house.ended(known, EndState.COMMITTED))
    assert row(known).state == "lost"


def test_an_answer_that_was_on_its_way_ends_too(house: House, other: House, operator: User) -> None:
    known = house.id()
    house.store(house.opened(known))
    silence(house)
    assert post(api_client(operator), known).status_code == 202
    again(other)
    keep_up(timezone.now())
    assert (row(known).state, row(known).action) == ("lost", "COMMIT")


def test_on_a_server_that_is_heard_it_waits_on(house: House, other: House) -> None:
    known = house.id()
    house.store(house.opened(known))
    again(other)
    keep_up(timezone.now())
    assert row(known).state == "open"


def test_other_messages_and_earlier_deliveries_say_nothing_of_it(house: House, other: House) -> None:
    before = other.id(1)
    other.store(other.opened(before), other.ended(before, EndState.ROLLED_BACK))
    known, unnamed = house.id(3), house.id(4)
    house.store(house.opened(known), house.opened(unnamed, jms_message_id=""))
    silence(house)
    other.store(
        other.opened(other.id(5), jms_message_id="ID:other"), other.opened(other.id(6), jms_message_id="")
    )
    keep_up(timezone.now())
    assert (row(known).state, row(unnamed).state) == ("open", "open")
