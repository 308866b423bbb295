"""A server's page adds up what fails there, of all settings, and says what of it fails nowhere else."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Activation, LaunchSetting, Run, Server
from failures.error_groups import queries
from failures.error_groups.increments import note
from failures.error_groups.queries import Here, failures_on
from failures.error_groups.rollup import fold_all
from failures.models import FailureDelta, FailureGroup, FailureProtocol
from failures.pages.groups import MOST_KINDS, WEEK
from tests.web import reports
from tests.web.factories import HOSTILE, World
from tests.web.pages import looked_at, signed_in
from tests.web.retention_rows import protocols

pytestmark = pytest.mark.django_db


def at_work() -> tuple[LaunchSetting, Activation]:
    """Two servers at work for one activation, 50 messages each."""
    setting = reports.setting()
    now = timezone.now()
    activation = Activation.objects.create(
        setting=setting, state="running", started_at=now - timedelta(hours=1)
    )
    for name in ("srv-1", "srv-2"):
        server = Server.objects.get_or_create(name=name)[0]
        Run.objects.create(activation=activation, server=server, epoch=1, handled=50)
    return setting, activation


@pytest.fixture
def house() -> tuple[LaunchSetting, Activation]:
    return at_work()


def fail(
    of: Activation, server: str, count: int, *, at: datetime | None = None, fold: bool = True, **kind: Any
) -> None:
    at = at or timezone.now() - timedelta(minutes=5)
    fields = {
        "server_name": server,
        "server": Server.objects.get(name=server),
        "occurred_at": at,
        "received_at": at,
    }
    note(protocols(of, count, 0, **(fields | kind)))
    if fold:
        fold_all(timezone.now())


def on(server: str, most: int = MOST_KINDS) -> queries.OnServer:
    return failures_on(server, timezone.now() - WEEK, most)


def told(kinds: Sequence[Here]) -> list[tuple[str, str, int, int, dict[str, int], bool]]:
    return [(*each.pair, each.count, each.activations, dict(each.elsewhere), each.alone) for each in kinds]


def test_what_fails_on_this_server_only_is_told_from_what_fails_everywhere(
    house: tuple[LaunchSetting, Activation],
) -> None:
    _, activation = house
    fail(activation, "srv-1", 7, fingerprint="v1:here")
    fail(activation, "srv-1", 3, fingerprint="v1:both")
    fail(activation, "srv-2", 4, fingerprint="v1:both")

    key = activation.setting.key
    assert told(on("srv-1").kinds) == [
        ("v1:here", key, 7, 1, {}, True),
        ("v1:both", key, 3, 1, {"srv-2": 4}, False),
    ]
    assert told(on("srv-2").kinds) == [("v1:both", key, 4, 1, {"srv-1": 3}, False)]


@pytest.mark.parametrize(
    ("failed", "handled"), [(4, 50), (7, 19)], ids=["few failures", "few attempts elsewhere"]
)
def test_nothing_is_concluded_from_little(
    house: tuple[LaunchSetting, Activation], failed: int, handled: int
) -> None:
    _, activation = house
    Run.objects.filter(server__name="srv-2").update(handled=handled)
    fail(activation, "srv-1", failed)

    assert [here.alone for here in on("srv-1").kinds] == [False]


def test_what_is_not_counted_together_yet_counts(house: tuple[LaunchSetting, Activation]) -> None:
    _, activation = house
    fail(activation, "srv-1", 5)
    fail(activation, "srv-1", 2, fold=False)
    fail(activation, "srv-2", 1, fold=False)

    assert FailureDelta.objects.exists()
    (here,) = on("srv-1").kinds
    assert (here.count, here.activations, here.elsewhere_count, here.alone) == (7, 1, 1, False)


def test_settings_with_the_most_failures_come_first_and_old_ones_not_at_all(
    house: tuple[LaunchSetting, Activation],
) -> None:
    setting, activation = house
    other = reports.setting("other")
    its = Activation.objects.create(setting=other, state="running", started_at=timezone.now())
    fail(activation, "srv-1", 2, fingerprint="v1:a")
    fail(its, "srv-1", 1, fingerprint="v1:a")
    fail(its, "srv-1", 4, fingerprint="v1:b")
    fail(activation, "srv-1", 9, fingerprint="v1:old", at=timezone.now() - timedelta(days=8))

    found = on("srv-1")
    assert [here.pair for here in found.kinds] == [
        ("v1:b", "other"),
        ("v1:a", "other"),
        ("v1:a", setting.key),
    ]
    few = on("srv-1", most=2)
    assert [here.pair[1] for here in few.kinds] == ["other", "other"] and few.left_out == 1


def test_as_many_questions_however_much_fails(
    house: tuple[LaunchSetting, Activation], django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, activation = house
    for number in range(40):
        fail(activation, "srv-1", 1, fingerprint=f"v1:{number}", fold=False)
    fold_all(timezone.now())
    with django_assert_num_queries(3):
        assert len(on("srv-1").kinds) == MOST_KINDS
    monkeypatch.setattr(queries, "MOST_GROUPS", 40)
    assert on("srv-1").cut


def test_the_page_leads_to_what_it_counts(world: World) -> None:
    server = Server.objects.get(name="srv-1")
    page = looked_at(signed_in(world, "viewer"), "/servers/srv-1/")
    group = FailureGroup.objects.filter(server_name="srv-1", setting_key="orders-export").order_by("-count")[
        0
    ]

    assert "Failures by setting" in page.text
    link = (
        f"/protocols/?server=srv-1&setting=orders-export&fingerprint={group.fingerprint.replace(':', '%3A')}"
    )
    assert link in page.links()
    listed = looked_at(signed_in(world, "viewer"), link)
    assert FailureProtocol.objects.filter(server=server, fingerprint=group.fingerprint).count() > 0
    assert "Nothing matches" not in listed.text


def test_hostile_texts_and_settings_that_are_gone_do_not_harm_it(world: World) -> None:
    activation = uuid4()
    at = timezone.now() - timedelta(minutes=1)
    text = HOSTILE.replace("\x00", "")
    said = {
        "setting_key": "<b>gone</b>",
        "exception_type": text[:60],
        "exception_text": text,
        "fingerprint": "v1:<i>",
    }
    rows = protocols(None, 1, 0, activation_uuid=activation, occurred_at=at, received_at=at, **said)
    note(rows)
    page = signed_in(world, "viewer").get("/servers/srv-1/").content.decode()

    assert "&lt;b&gt;gone" in page and "<b>gone" not in page and "<script>alert" not in page
    FailureProtocol.objects.filter(pk=rows[0].pk).delete()
    assert "protocols deleted by retention" in looked_at(signed_in(world, "viewer"), "/servers/srv-1/").text


def test_it_is_for_who_may_see_protocols_and_says_where_there_is_nothing(world: World) -> None:
    assert (
        "No failures on this server in the last 7 days."
        in looked_at(signed_in(world, "viewer"), "/servers/srv-5/").text
    )
    watcher = world.people["outsider"]
    watcher.user_permissions.add(Permission.objects.get(codename="view_server"))
    assert "Failures by setting" not in looked_at(signed_in(world, "outsider"), "/servers/srv-1/").text


def test_it_costs_the_page_as_many_questions_for_much_as_for_little(world: World) -> None:
    client = signed_in(world, "viewer")

    def asked() -> int:
        with CaptureQueriesContext(connection) as found:
            client.get("/servers/srv-1/")
        return len(found)

    asked()
    before = asked()
    activation = world.activations["orders-export"]
    for number in range(30):
        fail(activation, "srv-1", 1, fingerprint=f"v1:{number}", fold=False)
    fold_all(timezone.now())
    assert asked() == before


def test_an_activation_names_what_of_it_fails_on_one_server_only(world: World) -> None:
    _, activation = at_work()
    fail(activation, "srv-1", 7, fingerprint="v1:here")
    fail(activation, "srv-1", 6, fingerprint="v1:both")
    fail(activation, "srv-2", 6, fingerprint="v1:both")
    path = f"/activations/{activation.pk}/"
    assert looked_at(signed_in(world, "viewer"), path).text.count("only here") == 1

    fail(activation, "srv-2", 1, fingerprint="v1:here")
    assert "only here" not in looked_at(signed_in(world, "viewer"), path).text


def test_what_a_silent_server_said_last_is_no_news(world: World) -> None:
    assert "last reported: running" in looked_at(signed_in(world, "viewer"), "/servers/srv-4/").text
    assert "last reported: {state}" not in looked_at(signed_in(world, "viewer"), "/servers/srv-1/").text


def test_a_count_leads_nowhere_where_no_list_shows_as_many(world: World) -> None:
    """An empty name narrows nothing: the list would show those of every setting."""
    at = timezone.now() - timedelta(minutes=1)
    said = {"occurred_at": at, "received_at": at, "fingerprint": "v1:same"}
    note(protocols(None, 1, 0, setting_key="", activation_uuid=uuid4(), **said))
    note(protocols(None, 3, 0, setting_key="gone", activation_uuid=uuid4(), **said))
    page = looked_at(signed_in(world, "viewer"), "/servers/srv-1/")

    assert "unnamed" in page.text
    assert [link for link in page.links() if "v1%3Asame" in link and "/protocols/" in link] == [
        "/protocols/?server=srv-1&setting=gone&fingerprint=v1%3Asame"
    ]


def test_a_clock_that_is_ahead_is_told_beside_the_latest(world: World) -> None:
    now = timezone.now()
    protocols(None, 1, 0, occurred_at=now + timedelta(days=400), received_at=now)
    assert "clock ahead" in looked_at(signed_in(world, "viewer"), "/servers/srv-1/").text
    assert "clock ahead" not in looked_at(signed_in(world, "viewer"), "/servers/srv-2/").text


def test_what_failed_elsewhere_leads_to_that_server_or_to_where_servers_are_told_apart(world: World) -> None:
    _, activation = at_work()
    key = activation.setting.key
    fail(activation, "srv-1", 2, fingerprint="v1:two")
    fail(activation, "srv-2", 3, fingerprint="v1:two")

    def links() -> list[str]:
        return looked_at(signed_in(world, "viewer"), "/servers/srv-1/").links()

    assert f"/protocols/?server=srv-2&setting={key}&fingerprint=v1%3Atwo" in links()
    fail(activation, "srv-3", 1, fingerprint="v1:two")
    assert f"/protocols/?server=srv-2&setting={key}&fingerprint=v1%3Atwo" not in links()
    assert links().count("/fingerprint/?of=v1%3Atwo") == 2
