"""Forms and lists of the admin say what people know, in their language: no codes, no rows that only join two
others, nothing of what is not there yet."""

from pathlib import Path

import django
import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from agents.models import OfferedAgent, Pool, ServerToken, StateChange
from alerts.models import AlertRule, NoticeTarget
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.test_pages_russian import SOURCE, entries

# Texts that Django has too, which are said otherwise here; each means the same in both places.
OTHERWISE = {
    "Duration", "Clear", "Add %s", "Change %s", "View %s", "Breadcrumbs", "Change password", "Add %(name)s",
    "Summary", "Search", "Password change", "Select %s", "Select %s to change", "Select %s to view",
    "Enabled", "Disabled", "may",
    'Are you sure you want to delete the %(object_name)s "%(escaped_object)s"? All of the following related '
    "items will be deleted:",
    "Whether the user will be able to authenticate using a password or not. If disabled, they may still be "
    "able to authenticate using other backends, such as Single Sign-On or LDAP.",
}  # fmt: skip


def test_no_text_of_ours_changes_what_django_says_with_the_same_words() -> None:
    """Else “Change” of a table becomes “Change” of the admin. A context keeps them apart."""
    ours = {
        entry["msgid"]: entry.get("msgstr", entry.get("msgstr[0]"))
        for entry in entries(SOURCE.read_text(encoding="utf-8"))
        if "msgctxt" not in entry
    }
    folder = Path(django.__file__).parent
    changed = set()
    for file in (folder / "conf", folder / "contrib" / "admin", folder / "contrib" / "auth"):
        text = (file / "locale" / "ru" / "LC_MESSAGES" / "django.po").read_text(encoding="utf-8")
        for entry in entries(text):
            theirs = entry.get("msgstr", entry.get("msgstr[0]"))
            if "msgctxt" not in entry and entry["msgid"] in ours and ours[entry["msgid"]] != theirs:
                changed.add(entry["msgid"])
    assert changed <= OTHERWISE
    assert len(changed) > 10


@pytest.fixture
def chief(world: World) -> Client:
    return signed_in(world, "chief", headers={"accept-language": "ru"})


def test_the_filter_of_a_list_and_its_button_have_names_of_their_own(chief: Client) -> None:
    Pool.objects.create(name="spare")
    AlertRule.objects.create(kind="spool_filling", upper=50)

    assert "Фильтр" in looked_at(chief, reverse("admin:alerts_alertrule_changelist")).texts
    assert "Применить фильтр" in looked_at(chief, "/protocols/").texts


def test_a_rule_and_an_address_are_named_in_words(world: World, chief: Client) -> None:
    rule = AlertRule.objects.create(kind="spool_filling", pool=Pool.objects.get(name="main"), upper=50)
    target = NoticeTarget.objects.create(
        setting=world.settings["invoices"], channel="email", address="oncall@shop.example"
    )
    of_rule = looked_at(chief, reverse("admin:alerts_alertrule_change", args=[rule.pk])).text
    of_target = looked_at(chief, reverse("admin:alerts_noticetarget_change", args=[target.pk])).text

    assert "Буфер отчётов (spool) заполняется main" in of_rule and "spool_filling" not in of_rule
    assert "значение не ниже 86 400 в течение 1 мин" in of_rule
    assert "электронная почта oncall@shop.example" in of_target
    viewer = signed_in(world, "viewer", headers={"accept-language": "ru"})
    seen = looked_at(viewer, reverse("admin:alerts_alertrule_change", args=[rule.pk])).text
    assert "Вид: Буфер отчётов (spool) заполняется" in seen and "spool_filling" not in seen


def test_deleting_a_group_names_nothing_that_only_joins_two_rows(world: World, chief: Client) -> None:
    group = Group.objects.get(name="viewer")
    page = looked_at(chief, reverse("admin:auth_group_delete", args=[group.pk]))

    assert "Удалить «viewer» (группа)?" in page.text
    assert "relationship" not in page.text
    of_user = reverse("admin:auth_user_delete", args=[world.people["viewer"].pk])
    assert "relationship" not in looked_at(chief, of_user).text


def test_the_form_of_a_password_is_russian(world: World, chief: Client) -> None:
    path = reverse("admin:auth_user_password_change", args=[world.people["viewer"].pk])
    text = looked_at(chief, path).text

    assert "Может ли пользователь входить по паролю." in text
    assert "текущий пароль пользователя будет потерян" in text
    assert "Whether" not in text and "If disabled" not in text


def test_a_new_server_shows_only_what_is_asked_for(world: World, chief: Client) -> None:
    server = world.servers["srv-1"]
    OfferedAgent.objects.filter(server=server).exclude(name="demo.orders").delete()
    new = looked_at(chief, reverse("admin:agents_server_add")).text
    known = looked_at(chief, reverse("admin:agents_server_change", args=[server.pk])).text

    assert "Последний отчёт KMA" in known and "Доступные агенты" in known
    assert "demo.orders агент сообщений 2.4.1" in known
    assert "Последний отчёт KMA" not in new and "Доступные агенты" not in new


def test_settings_of_a_destination_lead_to_their_pages(world: World, chief: Client) -> None:
    destination = world.settings["invoices"].destination_id
    page = looked_at(chief, reverse("admin:agents_destination_change", args=[destination]))

    assert "/settings/invoices/" in page.links()


def test_columns_have_russian_heads(world: World, chief: Client) -> None:
    ServerToken.objects.create(server=world.servers["srv-1"], digest="d")
    for name in ("agents_statechange", "agents_servertoken"):
        page = looked_at(chief, reverse(f"admin:{name}_changelist"))
        assert "Сервер" in page.texts and "Server" not in page.texts, name


def test_the_index_of_the_admin_has_a_place_in_the_site_and_no_empty_box(chief: Client) -> None:
    page = looked_at(chief, "/records/")

    assert "Обзор › Администрирование" in page.text
    assert "Последние действия" not in page.text


def test_a_list_says_how_many_rows_it_has_without_a_plural_that_is_wrong(
    chief: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django has the plural of one form, so “5 пулы”."""
    Pool.objects.bulk_create(Pool(name=f"p-{number}") for number in range(3))
    assert "Всего: 5" in looked_at(chief, reverse("admin:agents_pool_changelist")).text

    count = StateChange.objects.count()
    assert count > 5
    assert f"Всего: {count}" in looked_at(chief, reverse("admin:agents_statechange_changelist")).text
    monkeypatch.setattr("console.admin.MOST", 5)
    monkeypatch.setattr("console.admin.BoundedPaginator.most", 5)
    assert "Всего: 5+" in looked_at(chief, reverse("admin:agents_statechange_changelist")).text
