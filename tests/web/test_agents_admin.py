"""The admin of servers, pools, destinations, settings and tokens."""

import html
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.models import Activation, Destination, LaunchSetting, Pool, Run, Server, ServerToken, StateChange
from agents.servers.admission import issue_server_token
from agents.state_history import note
from tests.web.rows import NOW, make_alive

KINDS = ["server", "pool", "destination", "launchsetting", "activation", "statechange"]
TOKENS = ["agents_servertoken", "console_apitoken"]


def signed_in(who: User) -> Client:
    client = Client()
    client.force_login(who)
    return client


@pytest.fixture
def admin(db: None) -> User:
    return User.objects.create_superuser("root", password="not-a-secret-in-tests")


@pytest.mark.parametrize("kind", KINDS)
def test_operator_and_viewer_see_the_lists_and_the_outsider_does_not(
    kind: str, setting: LaunchSetting, operator: User, viewer: User, outsider: User
) -> None:
    url = reverse(f"admin:agents_{kind}_changelist")

    assert [signed_in(who).get(url).status_code for who in (operator, viewer, outsider)] == [200, 200, 403]
    assert Client().get(url).status_code == 302


@pytest.mark.parametrize("kind", TOKENS)
def test_tokens_are_for_administrators(
    kind: str, operator: User, viewer: User, outsider: User, admin: User
) -> None:
    url = reverse(f"admin:{kind}_changelist")

    assert [signed_in(who).get(url).status_code for who in (operator, viewer, outsider, admin)] == [
        403,
        403,
        403,
        200,
    ]


@pytest.mark.parametrize(
    ("language", "app", "kind"), [("en", "Console", "API tokens"), ("ru", "Консоль", "Токены API")]
)
def test_tokens_of_people_are_where_an_administrator_looks(
    language: str, app: str, kind: str, admin: User
) -> None:
    page = signed_in(admin).get("/records/", headers={"accept-language": language}).content.decode()
    table = page.partition('class="app-console ')[2].partition("</table>")[0]
    assert app in table and f'<a href="/console/apitoken/">{kind}</a>' in table


def form(setting: LaunchSetting, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "key": setting.key,
        "agent": setting.agent,
        "kind": setting.kind,
        "timing": setting.timing,
        "spread": setting.spread,
        "pool": setting.pool_id,
        "destination": setting.destination_id,
        "mode": setting.mode,
        "concurrency": setting.concurrency,
        "breaker_m": setting.breaker_m,
        "drain_idle_seconds": setting.drain_idle_seconds,
        "drain_wait_seconds": setting.drain_wait_seconds,
        "drain_limit_messages": setting.drain_limit_messages,
        "drain_limit_minutes": setting.drain_limit_minutes,
        "restart_seconds": setting.restart_seconds,
        "grace_seconds": setting.grace_seconds,
        "handling_timeout_seconds": setting.handling_timeout_seconds,
        "transaction_timeout_seconds": setting.transaction_timeout_seconds,
        "dups_ok_messages": setting.dups_ok_messages,
        "dups_ok_seconds": setting.dups_ok_seconds,
        "acknowledgement_timeout_seconds": setting.acknowledgement_timeout_seconds,
        "acknowledgement_property": setting.acknowledgement_property,
        "after_last": setting.after_last,
        "blocked_seconds": setting.blocked_seconds,
        "exception_destination": setting.exception_destination,
        "duplicate_key": setting.duplicate_key,
        "duplicate_window_seconds": setting.duplicate_window_seconds,
        "child_memory_mb": setting.child_memory_mb,
        "goal_seconds": setting.goal_seconds,
        "goal_percent": setting.goal_percent,
        "parameters": "{}",
        "masked_properties": "[]",
        "description": "",
    }
    return values | changes


def test_saving_a_setting_in_the_admin_stores_its_wish(operator: User, setting: LaunchSetting) -> None:
    client = signed_in(operator)
    added = client.post(
        reverse("admin:agents_launchsetting_add"), form(setting, key="exports", spread="MANY")
    )
    assert added.status_code == 302, added.content.decode()[:3000]

    new = LaunchSetting.objects.get(key="exports")
    assert (new.provision_state, bool(new.wanted_hash)) == ("pending", True)


def test_the_key_of_a_setting_and_the_name_of_a_destination_never_change(
    operator: User, setting: LaunchSetting
) -> None:
    client = signed_in(operator)
    changed = client.post(
        reverse("admin:agents_launchsetting_change", args=[setting.pk]),
        form(setting, key="other", concurrency=3),
    )
    assert changed.status_code == 302, changed.content.decode()[:3000]

    setting.refresh_from_db()
    assert (setting.key, setting.concurrency, setting.enabled) == ("orders", 3, False)


@pytest.mark.parametrize("key", ["feed", "unknown", "bin", "UPPER", "x", "a b"])
def test_a_reserved_or_wrong_key_is_refused_in_the_form(
    operator: User, setting: LaunchSetting, key: str
) -> None:
    answer = signed_in(operator).post(reverse("admin:agents_launchsetting_add"), form(setting, key=key))

    assert answer.status_code == 200
    assert not LaunchSetting.objects.filter(key=key).exists()


def test_the_page_of_a_destination_says_who_shares_its_policy(operator: User, setting: LaunchSetting) -> None:
    url = reverse("admin:agents_destination_change", args=[setting.destination_id])
    page = signed_in(operator).get(url).content.decode()

    assert (
        "The broker keeps one policy per address, so a change applies to all launch settings "
        "of this destination. If the maximum number of attempts is −1, there is no limit. If "
        "the maximum delay is empty, 10 times the delay is used. If the expiry is empty, "
        "messages never expire. Failed and expired messages always go to the dead-letter "
        "queue of their setting."
    ) in page and "orders" in page


def test_a_new_policy_saved_in_the_admin_is_a_new_wish(operator: User, setting: LaunchSetting) -> None:
    url = reverse("admin:agents_destination_change", args=[setting.destination_id])
    body = {
        "max_attempts": 2, "delay_ms": 5000, "multiplier": 2.0, "max_delay_ms": "",
        "collision_avoidance": 0.0,
        "expiry_ms": "", "description": "", "settings-TOTAL_FORMS": 0, "settings-INITIAL_FORMS": 0,
    }  # fmt: skip
    answer = signed_in(operator).post(url, body)
    assert answer.status_code == 302, answer.content.decode()[:3000]

    setting.refresh_from_db()
    assert setting.provision_state == "pending"
    assert Destination.objects.get().max_attempts == 2


def test_a_destination_that_nothing_receives_from_says_that_the_broker_has_it_not(
    operator: User, setting: LaunchSetting
) -> None:
    client, lone = signed_in(operator), Destination.objects.create(name="shop.reports")
    words = "It does not exist on the broker"

    assert (
        "A destination is a broker address. Every setting below receives the messages "
        "published to this address. The broker creates the address with this policy when the "
        "first setting subscribes. Until the address exists, the broker rejects messages sent "
        "to it."
    ) in client.get("/agents/destination/add/").content.decode()
    assert words in client.get(f"/agents/destination/{lone.pk}/change/").content.decode()
    assert words not in client.get(f"/agents/destination/{setting.destination_id}/change/").content.decode()


def test_a_viewer_changes_nothing(viewer: User, setting: LaunchSetting, server: Server) -> None:
    client = signed_in(viewer)
    for name, pk in (
        ("launchsetting", setting.pk),
        ("destination", setting.destination_id),
        ("server", server.pk),
    ):
        assert client.post(reverse(f"admin:agents_{name}_change", args=[pk]), {}).status_code == 403
    assert client.get(reverse("admin:agents_launchsetting_add")).status_code == 403


def test_tokens_are_revoked_by_an_action_and_their_digests_shown_nowhere(admin: User, server: Server) -> None:
    issue_server_token(server, now=NOW)
    token = ServerToken.objects.get()
    client = signed_in(admin)
    url = reverse("admin:agents_servertoken_changelist")
    assert token.digest not in client.get(url).content.decode()
    client.post(url, {"action": "revoke", "_selected_action": [token.pk]})

    token.refresh_from_db()
    assert token.revoked_at is not None


def test_after_saving_comes_the_page_where_it_is_switched_on(operator: User, setting: LaunchSetting) -> None:
    client = signed_in(operator)
    added = client.post(reverse("admin:agents_launchsetting_add"), form(setting, key="exports"))
    changed = client.post(reverse("admin:agents_launchsetting_change", args=[setting.pk]), form(setting))
    more = client.post(reverse("admin:agents_launchsetting_add"), form(setting, key="more", _addanother="1"))

    assert added.headers["Location"] == "/settings/exports/"
    assert changed.headers["Location"] == "/settings/orders/"
    assert more.headers["Location"] == reverse("admin:agents_launchsetting_add")


def test_a_setting_that_is_not_saved_has_no_state_and_offered_agents_are_suggested(
    operator: User, setting: LaunchSetting, server: Server, second_server: Server
) -> None:
    make_alive(server, second_server, now=NOW, agents=("demo.orders",))
    client = signed_in(operator)
    page = client.get(reverse("admin:agents_launchsetting_add")).content.decode()

    assert "Since:" not in page and "being created on the broker" not in page
    assert (
        '<datalist id="offered-agents"><option value="demo.orders">srv-1, srv-2</option></datalist>' in page
    )
    assert (
        'list="offered-agents"' in page
        and "The breaker trips after M consecutive failures of any type, or after M / 3 of the same type."
        in page
    )
    assert (
        "Since:"
        in client.get(reverse("admin:agents_launchsetting_change", args=[setting.pk])).content.decode()
    )


def test_the_preview_names_the_queue_of_the_setting_and_an_agent_that_nobody_offers(
    operator: User, setting: LaunchSetting, server: Server
) -> None:
    make_alive(server, now=NOW, agents=("demo.orders",))
    other = Pool.objects.create(name="other")

    def preview(query: str) -> str:
        return html.unescape(
            signed_in(operator).get(f"/previews/setting/?breaker_m=10&{query}").content.decode()
        )

    assert "After the last attempt, the message goes to DLQ.orders." in preview(
        "setting=orders&agent=demo.orders"
    )
    assert "After the last attempt, the message goes to DLQ.exports." in preview(
        f"destination={setting.destination_id}&key=exports"
    )
    assert "After the last attempt, the message goes to DLQ.…." in preview(
        f"destination={setting.destination_id}&key=<b>"
    )
    assert (
        "The agent “x” cannot start: it is not available on any server. Available agents: demo.orders."
    ) in preview("agent=x")
    assert "” cannot start: it is not available on any server. Available agents:" not in preview(
        "agent=demo.orders"
    )
    assert "it is not available in the pool “other”" in preview(f"agent=demo.orders&pool={other.pk}")
    assert "offers" not in preview(f"agent=demo.orders&pool={setting.pool_id}")


def test_dates_of_the_admin_are_written_as_on_the_other_pages(operator: User, setting: LaunchSetting) -> None:
    LaunchSetting.objects.update(state_since=NOW)
    client, url = signed_in(operator), reverse("admin:agents_launchsetting_changelist")

    assert "1 Mar 2026, 12:00:00 UTC" in client.get(url).content.decode()
    russian = client.get(url, headers={"accept-language": "ru"}).content.decode()
    assert "1 мар 2026, 12:00:00 UTC" in russian
    assert 'title="1 Mar 2026, 12:00:00 UTC"' in client.get(f"/settings/{setting.key}/").content.decode()


def remove(client: Client, server: Server) -> str:
    """What the person is told after confirming."""
    answer = client.post(f"/servers/{server.name}/remove/", follow=True)
    return html.unescape(answer.content.decode())


def test_a_server_that_was_never_heard_is_removed_with_its_tokens(
    admin: User, operator: User, server: Server
) -> None:
    issue_server_token(server, now=NOW)
    asked = signed_in(admin).get(reverse("admin:agents_server_delete", args=[server.pk]), follow=True)
    assert (
        asked.redirect_chain == [("/servers/srv-1/remove/", 302)] and "permanently?" in asked.content.decode()
    )
    assert signed_in(operator).get("/servers/srv-1/remove/").status_code == 403
    assert signed_in(operator).post("/servers/srv-1/remove/").status_code == 403

    assert "Removed: srv-1" in remove(signed_in(admin), server)
    assert not Server.objects.exists() and not ServerToken.objects.exists()


def test_a_server_that_is_alive_or_has_open_runs_is_not_removed_and_the_reason_is_said(
    admin: User, server: Server, setting: LaunchSetting
) -> None:
    client = signed_in(admin)
    make_alive(server, now=timezone.now())
    assert "The server srv-1 cannot be removed: it is online. Stop its KMA first." in remove(client, server)

    make_alive(server, now=NOW)
    run = Run.objects.create(activation=Activation.objects.create(setting=setting), server=server, epoch=1)
    assert "open instances (orders)" in remove(client, server)
    assert "delete_selected" not in client.get(reverse("admin:agents_server_changelist")).content.decode()

    note(setting, "run", "wanted", "lost", now=NOW, server=server)
    Run.objects.filter(pk=run.pk).update(closed_at=NOW)
    assert "Removed: srv-1" in remove(client, server)
    assert not Server.objects.filter(pk=server.pk).exists() and not Run.objects.exists()
    assert StateChange.objects.filter(server=None, what="run").count() == 1


def test_russians_read_states_and_permissions_in_russian(admin: User, setting: LaunchSetting) -> None:
    note(setting, "setting", "disabled", "enabled", now=NOW)
    client = signed_in(admin)

    def page(name: str, *args: Any) -> str:
        answer = client.get(reverse(f"admin:{name}", args=args), headers={"accept-language": "ru"})
        return html.unescape(answer.content.decode())

    changes = page("agents_statechange_changelist")
    assert (
        "выключена" in changes
        and "включена" in changes
        and "disabled" not in changes.replace("disabled>", "")
    )
    change = page("agents_statechange_change", StateChange.objects.get().pk)
    assert "включена" in change and "enabled" not in change
    for form_of_people in (page("auth_group_add"), page("auth_user_change", admin.pk)):
        assert "Может включать настройки запуска" in form_of_people
        assert "настройка запуска | Может просматривать: настройки запуска" in form_of_people
        assert "Can enable" not in form_of_people and "Can view" not in form_of_people
