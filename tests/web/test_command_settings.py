"""manage.py settings: the same operations and rights as the pages, for scripts."""

import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from agents.models import Activation, LaunchSetting, Pool, StateChange
from console.reasons import NO_REASON, said
from tests.web.rows import make_alive, make_setting


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("settings", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def delayed(pool: Pool) -> LaunchSetting:
    make_alive(*pool.servers.all(), now=timezone.now())
    return make_setting(pool, timing="DELAYED")


def test_the_list_names_every_setting_with_its_state(delayed: LaunchSetting, pool: Pool) -> None:
    make_setting(pool, "invoices")
    lines = told("list").splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["invoices", "disabled", "ASAP-ANY"], ["orders", "disabled", "DELAYED-ANY"],
    ]  # fmt: skip
    rows: list[dict[str, Any]] = json.loads(told("list", "--json"))
    assert [(row["key"], row["enabled"], row["pool"]) for row in rows] == [
        ("invoices", False, "demo"), ("orders", False, "demo"),
    ]  # fmt: skip


def test_a_setting_is_enabled_run_stopped_and_disabled(delayed: LaunchSetting) -> None:
    assert told("enable", "orders") == "Enabled: orders\n"
    assert told("enable", "orders") == "Already enabled: orders\n"
    started = json.loads(told("run", "orders", "--json"))
    assert (started["done"], started["enabled"]) == ("Started: orders", True)
    assert Activation.objects.get().pk.hex == started["activation"].replace("-", "")
    assert told("stop", "orders", "--reason", "enough") == "Stopping: orders\n"
    assert str(Activation.objects.get().reason) == "enough (from the command line)"
    assert told("disable", "orders", "--ticket", "OPS-7") == "Disabled: orders\n"
    delayed.refresh_from_db()
    assert (str(delayed.disabled_reason), delayed.disabled_ticket) == ("from the command line", "OPS-7")
    assert told("disable", "orders") == "Already disabled: orders\n"


def test_as_a_person_it_has_the_rights_and_the_name_of_the_person(
    delayed: LaunchSetting, operator: User, viewer: User
) -> None:
    with pytest.raises(CommandError, match="Can enable launch settings"):
        told("enable", "orders", "--as", "viewer")
    with pytest.raises(CommandError, match="no active user 'nobody'"):
        told("enable", "orders", "--as", "nobody")
    assert not StateChange.objects.exists()

    told("enable", "orders", "--as", "operator")
    told("disable", "orders", "--as", "operator", "--reason", "mending")
    assert set(StateChange.objects.filter(what="setting").values_list("by__username", "reason")) == {
        ("operator", NO_REASON), ("operator", said("mending")),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("enable", "nothing"), "no setting 'nothing'"),
        (("run", "orders"), "disabled"),
        (("stop", "orders"), "no running activation"),
        (("disable", "orders", "--until", "soon"), "soon is not a timestamp"),
        (("disable", "orders", "--until", "2030-01-01T00:00:00"), "with a UTC offset"),
        (("disable", "orders", "--until", "2020-01-01T00:00:00+00:00"), "past"),
    ],
)
def test_what_cannot_be_done_ends_with_its_reason(
    delayed: LaunchSetting, arguments: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(CommandError, match=problem):
        told(*arguments)
