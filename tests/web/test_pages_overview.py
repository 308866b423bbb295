"""The overview says what is wrong, how much and since when; its numbers are those of the rows and of the
broker."""

import re
import threading
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.models import (
    Activation,
    Destination,
    LaunchSetting,
    OfferedAgent,
    Pool,
    ProvisionState,
    Run,
    Server,
)
from agents.provisioning import queue_counts as figures
from broker.port import BrokerTimeout, ManagementFailed
from console import broker
from dlq.models import UndeliveredMessage
from failures.models import RefusedRecord
from ma_site.checks import work
from ma_site.pages import health, parts
from ma_site.pages.parts import DOWN, OK, Part
from tests.web.factories import World, make_people
from tests.web.pages import Elements, broker_answers, broker_figures, looked_at, signed_in
from tests.web.rows import make_setting


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> None:
    broker_answers(monkeypatch, broker_figures(dead=17, waiting=1234))
    monkeypatch.setattr("dlq.queues.queries.message_count", lambda queue: 2)


def test_the_summary_counts_what_the_rows_say(world: World, answering: None) -> None:
    text = looked_at(signed_in(world, "viewer"), "/").text

    assert "1 setting disabled by the breaker 1 disabled manually 1 never enabled" in text
    assert "155 dead letters" in text  # 9 settings with messages × 17, and 2 of nobody
    assert "3 of 5 servers online" in text
    assert "last failure" in text


def test_every_number_is_a_link_to_what_it_counts(world: World, answering: None) -> None:
    links = looked_at(signed_in(world, "viewer"), "/").links()

    activation = world.activations["orders-export"].pk
    for wanted in (
        *(f"/settings/?state={kind}" for kind in ("tripped", "manual", "never")), "/dead-letters/",
        "/servers/", f"/activations/{activation}/",
        f"/protocols/?activation={activation}", "/dead-letters/orders-export/",
    ):  # fmt: skip
        assert wanted in links


def test_what_needs_a_person_is_named_with_what_can_be_done(world: World, answering: None) -> None:
    page = looked_at(signed_in(world, "operator"), "/")

    assert "not created on the broker: AMQ229204" in page.text
    assert "no heartbeat for 2 min" in page.text
    assert re.search(r"17 dead letters · oldest: \d+ min · 100 % KeyError", page.text)
    assert "disabled for 17 h, 1,236 messages waiting · supplier moves house" in page.text
    assert "/settings/stock-sync/enable/" in page.links()
    assert "/dead-letters/orders-export/give-back/?all=1" in page.links()
    assert "/settings/stock-sync/enable/" not in looked_at(signed_in(world, "viewer"), "/").links()


def test_without_the_broker_the_page_answers_from_rows_and_says_so(world: World) -> None:
    page = looked_at(signed_in(world, "viewer"), "/")

    assert "8 dead letters from the index" in page.text
    assert "; figures are out of date" in page.text


def test_figures_of_before_are_greyed_with_their_age(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    client = signed_in(world, "viewer")
    broker_answers(monkeypatch, broker_figures(waiting=77))
    assert "77" in looked_at(client, "/settings/orders-export/").text

    def away(setting: LaunchSetting, now: object) -> None:
        raise BrokerTimeout("no answer")

    broker_answers(monkeypatch, away)
    monkeypatch.setattr(figures, "FRESH", timedelta(0))
    page = looked_at(client, "/settings/orders-export/")

    assert "The broker is not responding; figures from" in page.text and "77" in page.text
    assert any("stale" in (attributes.get("class") or "") for _tag, attributes in page.found)


def test_a_broker_that_is_away_is_asked_once_and_not_for_each_setting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def away(setting: LaunchSetting, now: object) -> None:
        asked.append(setting.key)
        raise BrokerTimeout("no answer")

    broker_answers(monkeypatch, away)
    signed_in(world, "viewer").get("/")
    signed_in(world, "viewer").get("/settings/")

    assert len(asked) == 1


def test_a_queue_that_is_missing_does_not_hide_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = broker_figures(waiting=4321)

    def some(setting: LaunchSetting, now: object) -> object:
        if setting.key == "prices-import":
            raise ManagementFailed("AMQ229017: queue does not exist")
        return answer(setting, now)

    broker_answers(monkeypatch, some)
    monkeypatch.setattr("dlq.queues.queries.message_count", lambda queue: 2)

    assert "4,321" in looked_at(signed_in(world, "viewer"), "/").text
    assert figures.broker_away_since() is None


def test_the_queues_of_a_whole_page_are_one_question(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, all_of = broker_figures(waiting=4321), []
    broker_answers(monkeypatch, one)
    listed = vars(figures)["figures_of_all"]  # what `broker_answers` has put there

    def counted(settings: list[LaunchSetting], now: datetime) -> object:
        all_of.append({setting.key for setting in settings})
        return listed(settings, now)

    monkeypatch.setattr(figures, "figures_of_all", counted)
    assert "4,321" in looked_at(signed_in(world, "viewer"), "/settings/").text

    [asked] = all_of
    assert one.asked == len(asked) > figures.FEW


def test_where_the_broker_lists_nothing_each_setting_is_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(settings: list[LaunchSetting], now: datetime) -> object:
        raise ManagementFailed("AMQ229213: no right to list")

    broker_answers(monkeypatch, broker_figures(waiting=4321))
    monkeypatch.setattr(figures, "figures_of_all", refused)

    assert "4,321" in looked_at(signed_in(world, "viewer"), "/settings/").text
    assert figures.broker_away_since() is None


def test_fresh_figures_are_not_asked_for_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = broker_figures()
    broker_answers(monkeypatch, answer)
    client = signed_in(world, "viewer")
    client.get("/settings/orders-export/")
    client.get("/settings/orders-export/")

    assert answer.asked == 1


def test_an_empty_house_says_what_will_appear_and_how_to_make_it(db: None, client: Client) -> None:
    figures.forget()
    client.force_login(make_people()["operator"])

    for path, words in {
        "/": (
            "A launch setting defines which agent processes the messages of a destination, and on "
            "which servers. The setting starts receiving messages as soon as it is saved."
        ),
        "/servers/": "Create a server with ./ma manage create_server NAME",
        "/protocols/": "No failures yet.",
        "/dead-letters/": (
            "Each setting gets its own dead-letter queue when it is saved. Its dead letters appear here."
        ),
        "/replays/": "No replays yet.",
    }.items():
        assert words in looked_at(client, path).text, path


def test_a_house_where_all_is_well_says_that_too(
    db: None, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures.forget()
    broker_answers(monkeypatch, broker_figures(dead=0, waiting=0, delayed=0))
    monkeypatch.setattr("dlq.queues.queries.message_count", lambda queue: 0)
    monkeypatch.setattr("ma_site.pages.overview.quick_parts", lambda now: [])
    client.force_login(make_people()["viewer"])
    pool = Pool.objects.create(name="main")
    pool.servers.add(Server.objects.create(name="srv-1", last_seen_at=timezone.now()))
    LaunchSetting.objects.create(
        key="quiet", agent="a", pool=pool, destination=Destination.objects.create(name="a.b"),
        provision_state=ProvisionState.READY,
    )  # fmt: skip

    assert (
        "Nothing needs attention: all enabled settings are running, there are no dead "
        "letters, and all servers are online."
    ) in looked_at(client, "/").text


def test_the_page_of_an_outsider_says_whom_to_ask(world: World) -> None:
    assert "Ask an administrator" in looked_at(signed_in(world, "outsider"), "/").text


def test_the_overview_needs_few_queries_however_many_runs(
    world: World, answering: None, django_assert_max_num_queries: object
) -> None:
    client = signed_in(world, "viewer")
    with django_assert_max_num_queries(60):  # type: ignore[operator]
        client.get("/")


def test_health_names_each_part_and_what_to_do(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(url: str) -> None:
        raise OSError("ConnectionError: refused")

    monkeypatch.setattr(health, "ping", refuses)
    page = looked_at(signed_in(world, "viewer"), "/health/")

    for words in (
        "ConnectionError: refused",
        "./ma logs redis",
        "./ma logs artemis",
        "heartbeat OK",
        "prices-import",
    ):
        assert words in page.text
    assert "/servers/srv-4/" in page.links()


def test_health_tells_a_process_that_stands_still(world: World) -> None:
    part = health._process("feed", world.now + timedelta(minutes=5))
    assert part.state == DOWN and "5 min" in str(part.says)


def test_states_are_icon_and_word_and_colour(world: World, answering: None) -> None:
    html = signed_in(world, "viewer").get("/").content.decode()
    states = html.split('<span class="state ')[1:]

    assert len(states) > 8
    for state in states:
        assert '<svg class="icon"' in state.split("</span>")[0]
        assert Elements(state.split("</span>")[0]).text


def test_a_broker_that_hangs_holds_a_page_for_a_moment_only(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken, ended = threading.Event(), threading.Event()

    def hangs(setting: LaunchSetting, now: object) -> None:
        woken.wait(60)
        ended.set()
        raise BrokerTimeout("no answer")

    monkeypatch.setattr(broker, "WAIT_SECONDS", 0.2)
    broker_answers(monkeypatch, hangs)
    monkeypatch.setattr(figures, "PAUSE_SECONDS", 0.0)
    client = signed_in(world, "viewer")
    for _again in range(2):
        assert client.get("/settings/orders-export/").status_code == 200
    assert not ended.is_set(), "the pages came while the broker hung"
    woken.set()


def only_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A house in which everything but its servers is well."""
    well = Part("part", OK, "")
    for name in ("_database", "_redis", "broker_part", "index_part", "unassigned_part", "provisioning_part"):
        monkeypatch.setattr(health, name, lambda *_: well)
    monkeypatch.setattr(health, "unreadable_parts", list)
    monkeypatch.setattr(health, "_process", lambda name, now: well)


def heard_just_now() -> None:
    """A page may take its time, and whoever is not heard for some seconds counts as silent."""
    Server.objects.exclude(last_seen_at=None).update(last_seen_at=timezone.now())


def refuse(world: World, amounts: dict[str, int]) -> None:
    for name, amount in amounts.items():
        server, spool = Server.objects.get_or_create(name=name)[0], uuid.uuid4()
        RefusedRecord.objects.bulk_create(
            RefusedRecord(spool=spool, number=n, server=server, reason="odd", received_at=world.now)
            for n in range(amount)
        )


def test_health_leads_to_the_servers_whose_records_were_refused(world: World) -> None:
    client = signed_in(world, "viewer")
    assert "Server records ok 0 records refused in 24 h" in looked_at(client, "/health/").text
    RefusedRecord.objects.create(
        spool=uuid.uuid4(),
        number=1,
        server=Server.objects.get(name="srv-1"),
        received_at=world.now - timedelta(days=2),
    )
    assert "Server records ok" in looked_at(client, "/health/").text, "two days ago"
    refuse(world, {"odd-1": 1, "odd-2": 4, "odd-3": 3, "odd-4": 2, "odd-5": 1})
    page = looked_at(client, "/health/")
    told = [(part.name, part.says, part.url) for part in health._records(world.now)]
    assert told == [
        ("Records of server odd-2", "4 records refused in 24 h", "/servers/odd-2/"),
        ("Records of server odd-3", "3 records refused in 24 h", "/servers/odd-3/"),
        ("Records of server odd-4", "2 records refused in 24 h", "/servers/odd-4/"),
        ("Records from other servers", "2 records refused in 24 h", "/servers/"),
    ]
    assert (
        "/servers/odd-2/" in page.links()
        and (
            "Open the server page to see the latest refused records and why they were refused. "
            "The usual cause is that the MA and KMA versions differ."
        )
        in page.text
    )


def test_health_counts_refused_records_up_to_a_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MOST_REFUSED", 5)
    refuse(world, {"odd-1": 5})
    assert [part.says for part in health._records(world.now)] == ["5 records refused in 24 h"]
    refuse(world, {"odd-1": 9})
    assert [part.says for part in health._records(world.now)] == ["5+ records refused in 24 h"]


def test_health_and_overview_agree_about_servers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    only_servers(monkeypatch)
    client, silent = signed_in(world, "viewer"), Server.objects.get(name="srv-4")
    assert "Health degraded" in looked_at(client, "/health/").text
    assert re.search(r"srv-5 not in use no heartbeat yet", looked_at(client, "/health/").text)
    assert "srv-5" not in looked_at(client, "/").text

    heard_just_now()
    assert "Health degraded" in looked_at(client, "/health/").text, "heard, and without the broker"
    silent.runs.update(connected=True)
    heard_just_now()
    assert "Health ok" in looked_at(client, "/health/").text

    Pool.objects.get(name="main").servers.add(Server.objects.get(name="srv-5"))
    heard_just_now()
    assert "Health degraded" in looked_at(client, "/health/").text
    assert re.search(
        r"srv-5 no heartbeat yet: start a KMA with this server's token", looked_at(client, "/").text
    )


def test_messages_that_the_broker_could_not_deliver_are_told_with_the_figures_that_are_wrong(
    world: World,
) -> None:
    client = signed_in(world, "viewer")
    assert "Undeliverable messages" not in looked_at(client, "/health/").text

    for number, deaths in enumerate((1, 3)):
        UndeliveredMessage.objects.create(
            node_id="n",
            queue="orders-export",
            message_id=number,
            letter_id=9,
            reason="bytes_in_stream",
            deaths=deaths,
        )
    text = looked_at(client, "/health/").text
    assert "2 messages that the broker cannot deliver to agents" in text
    assert "broker counts are too low: orders-export −2" in text
    assert [finding.ok for finding in work.check_undelivered(timezone.now())] == [False]


def test_messages_that_the_broker_could_not_read_are_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(world, "viewer")
    assert "that the broker could not convert to AMQP" not in looked_at(client, "/health/").text

    monkeypatch.setattr(parts, "message_count", lambda queue: 2 if queue == "MA.unreadable" else 0)
    text = looked_at(client, "/health/").text
    assert "MA.unreadable: 2 messages that the broker could not convert to AMQP" in text
    assert (
        "No agent receives these messages, and the console does not show them. "
        "Read them with a JMS (Core) client, then notify their producer."
    ) in text


def test_many_settings_come_in_pages_and_many_servers_as_a_few_dots(
    operator: User, pool: Pool, answering: None
) -> None:
    for number in range(40):
        pool.servers.add(Server.objects.create(name=f"s-{number:02}"))
    for number in range(60):
        make_setting(pool, f"k-{number:02}", spread="MANY")
    LaunchSetting.objects.filter(key="k-00").update(enabled=True)
    activation = Activation.objects.create(setting=LaunchSetting.objects.get(key="k-00"), state="running")
    for server in pool.servers.all():
        Run.objects.create(activation=activation, server=server, epoch=1)
    client = Client()
    client.force_login(operator)

    first, second = looked_at(client, "/settings/"), looked_at(client, "/settings/?page=2")
    assert "k-49" in first.text and "k-50" not in first.text and "?page=2" in first.links()
    assert "k-50" in second.text and "k-49" not in second.text
    assert "+30" in first.text  # 42 of them
    overview = looked_at(client, "/")
    assert (
        "k-49" in overview.text
        and "/settings/?page=2" in overview.links()
        and "1 of 60 enabled" in overview.text
    )


def test_the_page_health_waits_once_for_a_broker_that_does_not_answer(
    client: Client, viewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[str] = []

    def wait(call: Any) -> Any:
        waits.append("waited")
        raise BrokerTimeout("no answer within 1.5 s")

    for module in (parts, figures):
        monkeypatch.setattr(module, "with_timeout", wait)
    client.force_login(viewer)
    page = client.get("/health/").content.decode()
    assert "no answer within 1.5 s" in page
    assert waits == ["waited"], "every further question would hold the page as long again"


def offers_the_demo(world: World) -> None:
    pool = Pool.objects.create(name="demo")
    server = Server.objects.get(name="srv-1")
    pool.servers.add(server)
    OfferedAgent.objects.update_or_create(server=server, name="demo.orders", defaults={"kind": "message"})


def test_the_demo_says_where_to_begin_in_both_languages(world: World, answering: None) -> None:
    assert "This is the demo" not in looked_at(signed_in(world, "viewer"), "/").text, "only where it is one"
    offers_the_demo(world)
    client = signed_in(world, "viewer")
    assert "Dead letters" in looked_at(client, "/").text and "Start here:" in looked_at(client, "/").text
    assert "Dead letters : read why a message failed" in looked_at(client, "/").text

    client.cookies["django_language"] = "ru"
    assert "Это демонстрация" in looked_at(client, "/").text
