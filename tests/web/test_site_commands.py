"""manage.py: servers, tokens, the demo, the doctor, demo orders."""

import json
import random
import stat
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from agents.models import Activation, Destination, LaunchSetting, Pool, ScheduledGroup, Server
from agents.servers import admission
from agents.settings.enable import disable_setting
from broker.port import Account, BrokerUnavailable, Outgoing
from console import broker as broker_service
from console.database import storage
from console.models import ApiToken
from console.reasons import said
from failures.models import SpoolMark
from ma_site.checks.finding import CHECKS, Finding, bad, good, run_checks
from ma_site.management.commands import prepare
from ma_site.management.commands.publish_demo_orders import DECK, Trickle, order
from tests.services import ArtemisService
from tests.web.rows import NOW, make_alive


def run(name: str, *arguments: str) -> str:
    out = StringIO()
    call_command(name, *arguments, stdout=out)
    return out.getvalue()


# -- servers and tokens --------------------------------------------------------------------------------------


def test_create_server_prints_a_token_that_works(db: None) -> None:
    secret = run("create_server", "srv-7").strip()

    token = admission.find_server_token(secret, now=NOW)
    assert token is not None and token.server.name == "srv-7"


def test_create_server_writes_a_token_file_that_only_its_owner_reads(db: None, tmp_path: Path) -> None:
    file = tmp_path / "secrets" / "token"
    for _ in range(2):
        printed = run("create_server", "srv-7", "--token-file", str(file))
        assert "kma_" not in printed
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert admission.find_server_token(file.read_text().strip(), now=NOW) is not None
    assert Server.objects.count() == 1


def test_a_token_that_cannot_be_written_ends_no_other(db: None, tmp_path: Path) -> None:
    file = tmp_path / "token"
    run("create_server", "srv-7", "--token-file", str(file))
    used = file.read_text().strip()
    (tmp_path / "token.new").mkdir()
    for _ in range(3):
        with pytest.raises(CommandError, match="cannot be written.*No token was issued"):
            run("create_server", "srv-7", "--token-file", str(file))
    assert admission.find_server_token(used, now=NOW) is not None


def test_create_server_says_what_it_did_to_a_server_that_existed(
    db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for _ in range(3):
        secret = run("create_server", "srv-7").strip()
        told.append(capsys.readouterr().err.strip())
        assert secret.startswith("kma_") and " " not in secret

    assert told == [
        "",
        "The server srv-7 already existed. It now has 2 valid tokens.",
        "The server srv-7 already existed. It now has 2 valid tokens; the oldest was revoked.",
    ]


def test_create_server_refuses_what_is_no_server_name(db: None) -> None:
    with pytest.raises(CommandError, match="not a server name"):
        run("create_server", "Srv 7")


def test_create_api_token_prints_a_token_of_an_active_user(outsider: User) -> None:
    secret = run("create_api_token", "outsider").strip()
    token = ApiToken.find(secret, now=NOW)
    assert token is not None and token.user == outsider

    with pytest.raises(CommandError, match="no user"):
        run("create_api_token", "nobody")
    User.objects.update(is_active=False)
    with pytest.raises(CommandError, match="not active"):
        run("create_api_token", "outsider")


# -- demo ----------------------------------------------------------------------------------------------------


@pytest.fixture
def house_broker(
    artemis: ArtemisService, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ArtemisService]:
    settings.MA_BROKER_STOMP = Account(artemis.stomp_address, artemis.ops.user, artemis.ops.password)
    settings.MA_BROKER_AMQP = Account(artemis.amqp_url, artemis.ops.user, artemis.ops.password)
    monkeypatch.setattr(broker_service, "_connection", None)
    yield artemis
    broker_service.management().close()


def test_the_demo_is_made_once_and_leaves_alone_what_people_changed(
    house_broker: ArtemisService, db: None
) -> None:
    first = run("create_demo", "--servers", "srv-1,srv-2")
    assert first.count("password:") == 1
    password = first.split("password:")[1].split()[0]
    admin = User.objects.get(username="admin")
    assert admin.is_superuser and admin.check_password(password)
    assert dict(LaunchSetting.objects.values_list("key", "enabled")) == {
        "orders": True,
        "invoices": True,
        "rehearsal": True,
        "report": True,
        "mailing": True,
    }
    assert ScheduledGroup.objects.get().enabled
    assert set(Group.objects.values_list("name", flat=True)) == {"operator", "viewer"}

    disable_setting(LaunchSetting.objects.get(key="orders"), None, said("manually"), NOW)
    assert "password" not in run("create_demo", "--servers", "srv-1,srv-2")
    assert not LaunchSetting.objects.get(key="orders").enabled
    assert Activation.objects.count() == 3


def test_a_start_makes_tokens_once_the_broker_is_its_own(
    db: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def call(name: str, *arguments: str, **options: Any) -> None:
        done.append(name)
        if name == "create_server":
            call_command(name, *arguments, **options)

    monkeypatch.setattr(prepare, "call_command", call)
    wanted = [argument for name in ("srv-1", "srv-2") for argument in ("--token", name, str(tmp_path / name))]
    assert run("prepare", "content", *wanted) == "", "what is printed there a person has to read"
    assert done == ["claim_broker", "provision", "create_server", "create_server"]
    for name in ("srv-1", "srv-2"):
        token = admission.find_server_token((tmp_path / name).read_text().strip(), now=NOW)
        assert token is not None and token.server.name == name
    assert "kma_" not in capsys.readouterr().err

    # A start of an empty database beside tokens of another one.
    kept = (tmp_path / "srv-1").read_text()
    Server.objects.filter(name="srv-2").delete()
    run("prepare", "content", *wanted)
    assert (tmp_path / "srv-1").read_text() == kept
    assert admission.find_server_token((tmp_path / "srv-2").read_text().strip(), now=NOW) is not None


def test_a_demo_that_people_have_narrowed_starts_without_what_they_forbid(
    house_broker: ArtemisService, db: None
) -> None:
    run("create_demo", "--servers", "srv-1")
    orders = LaunchSetting.objects.get(key="orders")
    Pool.objects.filter(pk=orders.pool_id).update(allowed_agents=["demo.invoices"])
    # Those of before are taken away; their messages on the broker are not what this is about.
    Activation.objects.filter(setting=orders).delete()
    LaunchSetting.objects.filter(pk=orders.pk).delete()

    run("create_demo", "--servers", "srv-1")
    assert not LaunchSetting.objects.get(key="orders").enabled


def test_a_first_password_that_cannot_be_written_makes_no_account(
    house_broker: ArtemisService, db: None, tmp_path: Path
) -> None:
    (tmp_path / "first.new").mkdir()
    with pytest.raises(CommandError, match="initial password cannot be written"):
        run("create_demo", "--servers", "srv-1", "--password-file", str(tmp_path / "first"))
    assert not User.objects.filter(is_superuser=True).exists() and not (tmp_path / "first").exists()


def test_the_first_password_is_shown_until_somebody_changes_it(
    house_broker: ArtemisService, db: None, tmp_path: Path
) -> None:
    file = tmp_path / "first"
    made = ("create_demo", "--servers", "srv-1", "--password-file", str(file))
    file.write_text("left-by-one-that-was-killed")
    assert "password: left-by-one-that-was-killed" in run(*made)
    assert file.stat().st_mode & 0o077 == 0
    assert "password: left-by-one-that-was-killed" in run(*made)

    admin = User.objects.get(username="admin")
    admin.set_password("their own")
    admin.save()
    assert "password" not in run(*made)
    assert not file.exists()
    assert "password" not in run(*made)


def test_viewers_see_and_operators_act_but_neither_sees_tokens(groups: None) -> None:
    def codes(group: str) -> set[str]:
        return set(Group.objects.get(name=group).permissions.values_list("codename", flat=True))

    assert all(code.startswith("view_") for code in codes("viewer"))
    assert {"can_enable", "can_disable", "change_launchsetting", "view_server"} <= codes("operator")
    assert {"can_run_pipeline", "can_cancel_pipeline"} <= codes("operator") - codes("viewer")
    assert {"view_pipelinerun", "view_failureprotocol", "view_deadletter"} <= codes("viewer")
    assert not {code for code in codes("operator") | codes("viewer") if "token" in code or "masked" in code}
    removed = {code.removeprefix("delete_") for code in codes("operator") if code.startswith("delete_")}
    assert removed == {"schedule", "scheduledgroup", "groupmember", "noticetarget", "alertrule"}


# -- orders --------------------------------------------------------------------------------------------------


def test_a_deck_of_orders_holds_every_kind() -> None:
    chance = random.Random(1)
    bodies = [order(chance, number, kind).message.body.value for number, kind in enumerate(DECK)]
    kinds = []
    for body in bodies:
        try:
            kinds.append(json.loads(body)["kind"])
        except ValueError:
            kinds.append("broken")

    assert set(kinds) == {"standard", "express", "return", "gift", "scan", "broken"}
    assert kinds.count("standard") > len(kinds) / 2


class Unsteady:
    """A publisher whose broker is away for the first calls."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.sent: list[Outgoing] = []

    def publish(self, messages: Sequence[Outgoing]) -> None:
        if self.failures:
            self.failures -= 1
            raise BrokerUnavailable("away")
        self.sent.extend(messages)

    def close(self) -> None: ...


def test_an_order_that_the_broker_did_not_take_is_published_when_it_is_back() -> None:
    publisher = Unsteady(failures=5)
    trickle = Trickle(publisher, random.Random(1), first=1)
    pauses = [trickle.step() for _ in range(7)]

    assert pauses == [1.0, 2.0, 4.0, 8.0, 10.0, 0.0, 0.0]
    assert [message.message.properties["order"].value for message in publisher.sent] == ["A-1", "A-2"]


# -- doctor --------------------------------------------------------------------------------------------------


def findings(name: str) -> list[Finding]:
    return [finding for finding in run_checks(timezone.now()) if finding.check == name]


def test_the_doctor_finds_a_whole_house_in_order(
    house_broker: ArtemisService, setting: LaunchSetting, server: Server, second_server: Server,
    redis_server: Any,
    settings: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(storage, "LASTING", ())  # the cluster of the tests waits for no disk
    settings.MA_REDIS_URL = redis_server.url
    run("provision")
    make_alive(server, second_server, now=timezone.now())
    for each in (server, second_server):
        admission.issue_server_token(each, now=NOW)
    from console.processes import record_heartbeat

    for name in ("beat", "feed"):
        record_heartbeat(name, timezone.now())

    assert [finding for finding in run_checks(timezone.now()) if not finding.ok] == []
    with pytest.raises(SystemExit) as end:
        run("doctor", "--json")
    assert end.value.code == 0


def test_a_setting_that_the_broker_refuses_fails_the_command_but_not_a_start(
    house_broker: ArtemisService, setting: LaunchSetting
) -> None:
    taken = Destination.objects.create(name=f"demo.{setting.key}.taken")
    run("provision")
    LaunchSetting.objects.filter(pk=setting.pk).update(destination=taken, wanted_hash="changed")
    with pytest.raises(CommandError, match="1 settings are not ready"):
        run("provision")
    run("provision", "--keep-going")


def test_the_doctor_says_what_is_wrong_and_what_to_do(setting: LaunchSetting, server: Server) -> None:
    Server.objects.filter(pk=server.pk).update(
        last_seen_at=timezone.now() - timedelta(minutes=2), clock_skew_seconds=90.0, spool_full=True
    )
    out = StringIO()
    with pytest.raises(SystemExit) as end:
        call_command("doctor", "--json", stdout=out)
    told = json.loads(out.getvalue())

    assert end.value.code == 1 and told["ok"] is False
    wrong = {finding["check"]: finding for finding in told["findings"] if not finding["ok"]}
    assert set(wrong) >= {"redis", "broker", "topology", "processes", "clock", "tokens", "KMAs"}
    assert all(finding["what_to_do"] for finding in wrong.values())
    assert any("no heartbeat for 12" in finding.detail for finding in findings("KMAs"))
    assert any("+90.0 s" in finding.detail for finding in findings("clock"))


def test_the_doctor_says_how_to_start_a_server_that_was_never_seen(
    setting: LaunchSetting, server: Server
) -> None:
    Server.objects.create(name="spare")
    [told] = [finding for finding in findings("KMAs") if finding.detail == "srv-1: no heartbeat yet"]

    assert "create_server srv-1" in told.what_to_do and "KMA_SERVER=srv-1" in told.what_to_do
    assert "logs" not in told.what_to_do
    assert [finding.ok for finding in findings("KMAs") if finding.detail.startswith("spare")] == [True]
    assert not [finding for finding in findings("tokens") if "spare" in finding.detail]


def test_the_doctor_warns_of_sample_agents_that_a_pool_without_the_demo_could_run(
    server: Server, pool: Pool
) -> None:
    def told() -> list[str]:
        return [finding.detail for finding in findings("KMAs") if "sample agents" in finding.detail]

    make_alive(server, now=timezone.now(), agents=("demo.scripted", "bench.noop", "shop.orders"))
    assert told() == [], "there the demo runs"
    Pool.objects.filter(pk=pool.pk).update(name="north")
    [warning] = told()
    assert "srv-1" in warning and "bench.noop, demo.scripted" in warning and "north" in warning
    assert "shop.orders" not in warning
    server.offered_agents.exclude(name="shop.orders").delete()
    assert told() == []


def test_the_doctor_says_that_a_server_offers_nothing(server: Server) -> None:
    make_alive(server, now=timezone.now(), agents=())
    [warning] = [finding for finding in findings("KMAs") if "has no agents" in finding.detail]
    assert not warning.ok and "KMA_AGENTS" in warning.what_to_do


def test_the_doctor_tells_what_the_database_has_lost_until_it_has_come_again(server: Server) -> None:
    lost = {"lost_from": 31, "lost_to": 1500, "lost_at": timezone.now()}
    mark = SpoolMark.objects.create(spool=uuid4(), server=server, stored_up_to=30, **lost)
    [told] = [finding for finding in findings("KMAs") if "records 31 to 1500 of its spool" in finding.detail]
    assert not told.ok and "sends again" in told.what_to_do
    SpoolMark.objects.filter(pk=mark.pk).update(
        stored_up_to=1500, never_came=12, gaps=[[31, 42]], passed_at=timezone.now()
    )
    [told] = [finding for finding in findings("KMAs") if "of its spool" in finding.detail]
    assert not told.ok and "12 records of its spool were never received, the latest 31 to 42" in told.detail
    a_day_ago = timezone.now() - timedelta(days=1, seconds=1)
    SpoolMark.objects.filter(pk=mark.pk).update(stored_up_to=30, lost_at=a_day_ago, passed_at=a_day_ago)
    assert not [finding for finding in findings("KMAs") if "of its spool" in finding.detail]


def test_the_doctor_finds_messages_that_the_broker_could_not_read(
    house_broker: ArtemisService, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("provision")
    assert [finding.detail for finding in findings("unreadable")] == ["MA.unreadable is empty"]

    management = broker_service.management()
    monkeypatch.setattr(type(management), "attribute", lambda self, resource, name: 2)
    [told] = findings("unreadable")
    assert not told.ok and "JMS" in told.what_to_do


def test_a_check_that_breaks_is_a_finding_and_the_next_one_runs(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(now: Any) -> list[Finding]:
        raise ZeroDivisionError("inside")

    checks: dict[tuple[int, str], Callable[[Any], list[Finding]]] = {
        (1, "broken"): broken,
        (2, "well"): lambda now: [good("fine"), bad("no", "do")],
    }
    monkeypatch.setattr("ma_site.checks.finding.CHECKS", checks)

    assert [(finding.check, finding.ok) for finding in run_checks(NOW)] == [
        ("broken", False),
        ("well", True),
        ("well", False),
    ]
    assert CHECKS is not checks


def test_the_doctor_tells_where_a_commit_may_be_lost_with_its_machine(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster of the tests waits for no disk; SQLite does, in each connection of the site."""

    def told() -> list[Finding]:
        return [each for each in run_checks(timezone.now()) if each.check == "database"]

    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            assert cursor.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert [each.ok for each in told()] == [True]
        monkeypatch.setattr(storage, "_asked", lambda question: "delete")
        assert [(each.ok, "journal mode delete" in each.detail) for each in told()] == [
            (True, False),
            (False, True),
        ]
        return
    bad_ones = [each.detail for each in told() if not each.ok]
    assert len(bad_ones) == 1 and "fsync, full_page_writes, synchronous_commit" in bad_ones[0]
    monkeypatch.setattr(storage, "LASTING", ("track_counts",))
    assert [each.ok for each in told()] == [True]
