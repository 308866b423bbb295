"""Deliveries that wait for an answer: what servers say of them, the answers, and what heartbeats carry."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from agents.acknowledgements import answers as answering
from agents.acknowledgements.answers import secret_of
from agents.heartbeat.desired import desired_state
from agents.heartbeat.heartbeats import accept_heartbeat
from agents.models import Acknowledgement, Activation, LaunchSetting, Pool, Run, Server
from contract import wire
from contract.acknowledgements import Action, EndState, make_id
from contract.messages import Answer, Record, RecordBatch
from contract.reasons import CONNECTION_LOST, NO_ANSWER, Reason
from contract.records import (
    KIND_OF,
    AcknowledgementEnded,
    AcknowledgementOpened,
    MessageIdentity,
    RecordRun,
)
from failures.intake.batch import accept_batch
from retention.ages.limits import AGE_LIMITS, ANSWERS
from tests.web.rows import api_client, heartbeat, make_alive, make_person, make_setting
from tests.web.teams import teammate

pytestmark = pytest.mark.both_databases

URL = "/api/v1/acknowledgements/"
JMS = "ID:1-2-3"


def dumped(content: Any) -> dict[str, Any]:
    """As it is written into a spool."""
    body = wire.dump(content)
    assert isinstance(body, dict)
    return body


class House:
    """One run of the mode CLIENT on one server, and its spool."""

    def __init__(self, pool: Pool, server: Server) -> None:
        self.server = server
        now = timezone.now()
        make_alive(server, now=now)
        self.setting = make_setting(pool, "answers", mode="CLIENT", enabled=True)
        self.activation = Activation.objects.create(setting=self.setting, state="running", started_at=now)
        self.run = Run.objects.create(activation=self.activation, server=server, epoch=1)
        self.spool, self.number = uuid4(), 0

    def id(self, nonce: int = 1, secret: str = "") -> str:
        secret = secret or secret_of(self.run, self.server)
        return make_id(
            secret, self.server.name, self.activation.pk, self.run.epoch, nonce.to_bytes(16, "big")
        )

    @property
    def of(self) -> RecordRun:
        return RecordRun(
            self.setting.key, self.activation.pk, self.run.epoch, self.server.name, self.setting.agent
        )

    def opened(self, acknowledgement: str, **changes: Any) -> AcknowledgementOpened:
        message = MessageIdentity(key="k-1", attempt=2)
        return replace(
            AcknowledgementOpened(self.of, acknowledgement, message, JMS, timezone.now()), **changes
        )

    def ended(
        self, acknowledgement: str, state: EndState, reason: Reason | None = None
    ) -> AcknowledgementEnded:
        return AcknowledgementEnded(self.of, acknowledgement, state, reason, timezone.now())

    def store(self, *contents: Any, ids: tuple[UUID, ...] = ()) -> Any:
        records = []
        for place, content in enumerate(contents):
            self.number += 1
            pk = ids[place] if ids else uuid4()
            records.append(Record(self.number, pk, KIND_OF[type(content)], dumped(content)))
        return accept_batch(
            self.server, RecordBatch(self.server.name, self.spool, tuple(records)), timezone.now()
        )

    def answers(self) -> tuple[Answer, ...]:
        return accept_heartbeat(self.server, heartbeat(self.server.name), timezone.now()).answers


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "PAUSE", 0.01)
    monkeypatch.setattr(answering.until_ended, "__defaults__", (0.05,))


@pytest.fixture
def house(pool: Pool, server: Server) -> House:
    return House(pool, server)


@pytest.fixture
def operating(operator: User) -> APIClient:
    return api_client(operator)


def row(acknowledgement: str) -> Acknowledgement:
    return Acknowledgement.objects.get(acknowledgement=acknowledgement)


def post(client: APIClient, acknowledgement: str, action: str = "COMMIT") -> Any:
    return client.post(URL, {"acknowledgement": acknowledgement, "action": action})


# -- what servers say ----------------------------------------------------------------------------------------


def test_a_delivery_waits_from_its_record_to_its_end(house: House) -> None:
    known = house.id()
    house.store(house.opened(known, due_at=timezone.now() + timedelta(seconds=60)))
    waiting = row(known)
    assert (waiting.state, waiting.setting, waiting.server) == ("open", house.setting, house.server)
    assert (waiting.message_key, waiting.jms_message_id, waiting.attempt) == ("k-1", JMS, 2)
    assert waiting.due_at is not None

    house.store(house.ended(known, EndState.EXPIRED, NO_ANSWER(seconds=3.0)))
    assert (row(known).state, str(row(known).reason)) == ("expired", "No acknowledgement arrived within 3 s.")
    assert row(known).ended_at is not None


def test_records_that_come_again_change_nothing(house: House) -> None:
    known, ids = house.id(), (uuid4(), uuid4())
    told = (house.opened(known), house.ended(known, EndState.LOST))
    assert house.store(*told, ids=ids).new == 2
    before = Acknowledgement.objects.values().get()

    again = house.store(*told, ids=ids)
    house.store(house.opened(known), house.ended(known, EndState.COMMITTED))

    assert (again.new, again.known) == (0, 2)
    assert Acknowledgement.objects.values().get() == before


def test_what_another_server_says_of_it_changes_nothing(house: House, pool: Pool) -> None:
    known = house.id()
    house.store(house.opened(known))
    other = Server.objects.create(name="other")
    pool.servers.add(other)
    told = replace(house.of, server="other")
    content = AcknowledgementEnded(told, known, EndState.COMMITTED, None, timezone.now())
    record = Record(1, uuid4(), KIND_OF[type(content)], dumped(content))
    accept_batch(other, RecordBatch("other", uuid4(), (record,)), timezone.now())

    assert row(known).state == "open"


def test_records_of_a_setting_that_is_gone_are_taken_and_make_no_row(house: House) -> None:
    gone = replace(house.of, setting="gone")
    receipt = house.store(
        house.opened(house.id(), run=gone), replace(house.ended(house.id(2), EndState.LOST), run=gone)
    )

    assert not receipt.refused and not Acknowledgement.objects.exists()


def test_a_run_of_the_mode_gets_a_secret_of_its_own_and_no_other_does(house: House, pool: Pool) -> None:
    other = Activation.objects.create(setting=make_setting(pool, "plain", enabled=True), state="running")
    Run.objects.create(activation=other, server=house.server, epoch=1)
    secrets = {run.setting: run.acknowledgement_secret for run in desired_state(house.server).runs}

    assert len(bytes.fromhex(secrets["answers"])) == 32 and secrets["plain"] == ""
    second = Run.objects.create(activation=house.activation, server=house.server, epoch=2)
    assert secret_of(second, house.server) != secrets["answers"] == secret_of(house.run, house.server)


# -- answers -------------------------------------------------------------------------------------------------


def test_an_answer_is_pending_until_its_server_tells_the_end(house: House, operating: APIClient) -> None:
    known = house.id()
    house.store(house.opened(known))
    assert house.answers() == ()

    answer = post(operating, known, "jbxCOMMIT")
    assert answer.status_code == 202, answer.content
    assert answer.json()["state"] == "pending" and answer["Location"] == f"{URL}{known}/"
    assert operating.get(answer["Location"]).json()["state"] == "pending"
    assert house.answers() == house.answers() == (Answer(known, Action.COMMIT),)

    house.store(house.ended(known, EndState.COMMITTED))
    assert house.answers() == ()
    assert operating.get(answer["Location"]).json()["state"] == "committed"
    again = post(operating, known)
    assert (again.status_code, again.json()["state"]) == (200, "committed")


def test_the_first_answer_counts(house: House, operating: APIClient) -> None:
    known = house.id()
    house.store(house.opened(known))
    post(operating, known, "COMMIT")

    other = post(operating, known, "ROLLBACK")
    assert (other.status_code, other.json()["state"]) == (409, "pending")
    assert post(operating, known, "COMMIT").status_code == 202
    assert house.answers() == (Answer(known, Action.COMMIT),)
    # What its agent answered itself counts as first too.
    within = house.id(2)
    house.store(house.opened(within), house.ended(within, EndState.ROLLED_BACK))
    assert post(operating, within, "ROLLBACK").status_code == 200
    assert post(operating, within, "COMMIT").status_code == 409


@pytest.mark.parametrize("state", [EndState.EXPIRED, EndState.LOST])
def test_what_waits_no_more_is_gone(house: House, operating: APIClient, state: EndState) -> None:
    known = house.id()
    house.store(house.opened(known), house.ended(known, state, Reason("delivery.run_ended")))
    answer = post(operating, known)

    assert answer.status_code == 410
    assert (answer.json()["state"], answer.json()["reason"]) == (
        state.value,
        "The instance ended before acknowledgement; the broker will redeliver the message.",
    )


def test_an_answer_that_is_quicker_than_the_record_is_taken(house: House, operating: APIClient) -> None:
    known = house.id()
    assert post(operating, known).status_code == 202
    assert house.answers() == (Answer(known, Action.COMMIT),)

    house.store(house.opened(known))
    assert (row(known).state, row(known).message_key) == ("pending", "k-1")
    house.store(house.ended(known, EndState.COMMITTED))
    assert row(known).state == "committed"


def test_an_id_that_nobody_made_is_unknown(house: House, operating: APIClient) -> None:
    made_up = house.id(secret="ab" * 32)
    assert [post(operating, each).status_code for each in (made_up, "nonsense", "a.b.c.d.e")] == [
        404,
        404,
        404,
    ]
    assert not Acknowledgement.objects.exists()


def test_an_id_of_a_run_that_is_closed_is_gone(house: House, operating: APIClient) -> None:
    Run.objects.update(closed_at=timezone.now(), state="finished")
    assert post(operating, house.id()).status_code == 410


def test_by_message_exactly_one_must_wait(house: House, operating: APIClient) -> None:
    asked = {"setting": "answers", "jms_message_id": JMS, "action": "ROLLBACK"}
    assert operating.post(URL, asked).status_code == 409
    house.store(house.opened(house.id(1)))
    assert operating.post(URL, asked).status_code == 202
    assert operating.post(URL, asked).status_code == 202
    house.store(house.opened(house.id(2)))
    two = operating.post(URL, asked)

    assert (two.status_code, two.json()["error"]) == (409, "not_exactly_one")
    assert operating.post(URL, asked | {"setting": "nobody"}).status_code == 404


@pytest.mark.parametrize(
    "asked",
    [
        {"action": "COMMIT"},
        {"setting": "answers", "action": "COMMIT"},
        {"acknowledgement": "x", "setting": "answers", "jms_message_id": JMS, "action": "COMMIT"},
        {"acknowledgement": "x"},
    ],
)
def test_a_delivery_is_named_in_one_way(operating: APIClient, house: House, asked: dict[str, str]) -> None:
    assert operating.post(URL, asked).status_code == 400


@pytest.mark.parametrize("action", ["", "ACCEPT", "КОММИТ", 5, None])
def test_another_action_is_refused_with_those_there_are(
    house: House, operating: APIClient, action: Any
) -> None:
    house.store(house.opened(house.id()))
    answer = operating.post(URL, {"acknowledgement": house.id(), "action": action})

    assert answer.status_code == 400 and row(house.id()).state == "open"
    if action and action != 5:
        assert "JBXCommit" in answer.json()["detail"] and "JBXRollback" in answer.json()["detail"]


def test_a_server_passes_on_what_its_agent_answers_by_id_alone(house: House, pool: Pool) -> None:
    elsewhere = api_client(Server.objects.create(name="elsewhere"))
    house.store(house.opened(house.id()))
    by_message = elsewhere.post(URL, {"setting": "answers", "jms_message_id": JMS, "action": "COMMIT"})

    assert by_message.status_code == 403
    assert post(elsewhere, house.id()).status_code == 202
    assert str(row(house.id()).answered_from) == "agent on elsewhere"
    assert elsewhere.get(URL).status_code == 403


def test_who_may_look_may_not_answer(house: House, viewer: User) -> None:
    house.store(house.opened(house.id()))
    client = api_client(viewer)

    assert post(client, house.id()).status_code == 403 and row(house.id()).state == "open"
    assert [each["acknowledgement"] for each in client.get(URL).json()["results"]] == [house.id()]
    assert post(api_client(), house.id()).status_code == 401
    assert post(api_client(make_person("nobody")), house.id()).status_code == 403


@pytest.mark.usefixtures("groups")
def test_a_team_answers_in_its_own_pools(house: House, pool: Pool) -> None:
    house.store(house.opened(house.id()))
    stranger = teammate(Pool.objects.create(name="other"), name="stranger", rights=("answer",))
    other_right = teammate(pool, name="runner", rights=("run", "stop"))
    mate = teammate(pool, rights=("answer",))

    for nobody in (stranger, other_right):
        assert post(api_client(nobody), house.id()).status_code == 403 and row(house.id()).state == "open"
    assert post(api_client(mate), house.id()).status_code == 202
    assert row(house.id()).answered_by == mate


def test_the_list_is_narrowed(house: House, operating: APIClient) -> None:
    house.store(house.opened(house.id(1)), house.opened(house.id(2)), house.ended(house.id(2), EndState.LOST))

    def listed(query: str) -> list[str]:
        return [each["acknowledgement"] for each in operating.get(f"{URL}?{query}").json()["results"]]

    assert listed("") == [house.id(1)] == listed("setting=answers") == listed(f"jms_message_id={JMS}")
    assert listed("state=lost") == [house.id(2)]
    assert listed("setting=other") == []
    assert operating.get(f"{URL}?state=nonsense").status_code == 400


# -- pages ---------------------------------------------------------------------------------------------------


@pytest.fixture
def browsing(operator: User) -> Client:
    client = Client()
    client.force_login(operator)
    return client


def test_the_page_lists_what_waits_and_takes_the_answer(house: House, browsing: Client) -> None:
    house.store(
        house.opened(house.id(), jms_message_id="<b>ID</b>", due_at=timezone.now() + timedelta(minutes=5))
    )
    text = browsing.get("/answers/").content.decode()
    assert "&lt;b&gt;ID&lt;/b&gt;" in text and "<b>ID</b>" not in text
    pk = row(house.id()).pk
    assert f"/answers/{pk}/commit/" in text and f"/answers/{pk}/rollback/" in text

    assert browsing.get(f"/answers/{pk}/rollback/").status_code == 200 and row(house.id()).state == "open"
    assert browsing.post(f"/answers/{pk}/rollback/").status_code == 302
    assert (row(house.id()).action, row(house.id()).answered_by) == (
        "ROLLBACK",
        User.objects.get(username="operator"),
    )
    assert f"/answers/{pk}/rollback/" not in browsing.get("/answers/").content.decode()
    assert house.answers() == (Answer(house.id(), Action.ROLLBACK),)


def test_the_page_asks_the_server_who_may(house: House, viewer: User) -> None:
    house.store(house.opened(house.id()))
    client = Client()
    client.force_login(viewer)
    pk = row(house.id()).pk

    assert "commit/" not in client.get("/answers/").content.decode()
    assert client.post(f"/answers/{pk}/commit/").status_code == 403 and row(house.id()).state == "open"


def test_setting_and_overview_lead_to_what_waits(house: House, browsing: Client) -> None:
    lead = '"/answers/'
    assert lead in browsing.get("/settings/answers/").content.decode()
    assert lead not in browsing.get("/").content.decode()
    house.store(house.opened(house.id()))
    assert lead in browsing.get("/").content.decode()
    assert f"{lead}?setting=answers" in browsing.get("/settings/answers/").content.decode()


def test_what_ended_is_shown_with_its_reason(house: House, browsing: Client) -> None:
    house.store(house.opened(house.id()), house.ended(house.id(), EndState.LOST, CONNECTION_LOST()))
    assert "The connection was lost" in browsing.get("/answers/?state=ended").content.decode()
    assert "The connection was lost" not in browsing.get("/answers/").content.decode()


def test_a_setting_says_what_its_mode_costs(house: House, browsing: Client) -> None:
    LaunchSetting.objects.update(acknowledgement_timeout_seconds=90.0)
    text = browsing.get("/settings/answers/").content.decode()
    assert "commits it or rolls it back" in text and "Acknowledgement timeout" in text


def test_what_ended_long_ago_is_forgotten(house: House, settings: Any) -> None:
    house.store(*(house.opened(house.id(n)) for n in (1, 2, 3)), house.ended(house.id(1), EndState.COMMITTED))
    house.store(house.ended(house.id(2), EndState.COMMITTED))
    Acknowledgement.objects.filter(acknowledgement=house.id(1)).update(
        ended_at=timezone.now() - timedelta(days=31)
    )
    Acknowledgement.objects.filter(acknowledgement=house.id(3)).update(
        created_at=timezone.now() - timedelta(days=99)
    )
    (aged,) = (each for each in AGE_LIMITS if each.what == ANSWERS)
    older = timezone.now() - timedelta(days=30)
    keys = aged.pick(older, 10)

    assert keys == [row(house.id(1)).pk] and aged.delete(keys, older) == 1
    assert Acknowledgement.objects.count() == 2
