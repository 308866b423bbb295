"""Who may see and do what: operator, viewer, outsider and somebody who is not signed in. Decided on the
server."""

import pytest
from django.utils.html import escape

from agents.models import LaunchSetting
from dlq.models import ReplayJob
from tests.web.factories import World
from tests.web.pages import signed_in
from tests.web.rendered import NOBODY, Pages

# By what it takes: it renders every page for three people.
pytestmark = pytest.mark.process

FOR_OPERATORS = (
    "switch off", "switch on", "give back all", "give back some", "new setting",
    "run now", "stop", "resume", "stop on a server", "start on a server",
    "group switch off", "group switch on", "group run",
    "label a setting", "freeze the site", "unfreeze the site", "freeze a pool", "unfreeze a pool",
    "cordon", "drain", "back", "snooze alert", "close alert", "apply a policy", "adopt a policy",
)  # fmt: skip
# With permissions of their own, which neither role has.
FOR_NO_ROLE = ("redirect all", "discard some", "edit by a rule", "edit a letter", "import",
               "new maintenance window")  # fmt: skip
# The operations overview and the list of records say themselves that there is nothing for an outsider.
OPEN = ("overview", "records")


def test_an_operator_opens_every_page(pages: Pages) -> None:
    for name, page in pages.of("operator").items():
        assert page.status == (403 if name in FOR_NO_ROLE else 200), name


def test_a_viewer_opens_every_page_that_changes_nothing(pages: Pages) -> None:
    for name, page in pages.of("viewer").items():
        assert page.status == (403 if name in FOR_OPERATORS + FOR_NO_ROLE else 200), name


def test_an_outsider_sees_nothing(pages: Pages) -> None:
    for name, page in pages.of("outsider").items():
        assert page.status == (200 if name in OPEN else 404 if name == "edit a letter" else 403), name
        # The choice of a language leads back to the address, which is the outsider's own word.
        text = page.html.replace(f'name="next" value="{escape(page.path)}"', "")
        assert "orders-export" not in text, name


def test_who_is_not_signed_in_is_asked_to(pages: Pages) -> None:
    for name, page in pages.of(NOBODY).items():
        assert (page.status, page.headers.get("Location", "")[:7]) == (302, "/login/"), name


@pytest.mark.parametrize("name", ["viewer", "outsider"])
def test_only_operators_change_anything(world: World, name: str) -> None:
    client = signed_in(world, name)
    letter = world.letters[20].pk

    for path, data in [
        ("/settings/orders-export/disable/", {"reason": "no"}),
        ("/settings/stock-sync/enable/", {}),
        ("/settings/night-sum/run/", {}),
        ("/settings/night-sum/stop/", {}),
        ("/settings/orders-export/resume/srv-3/", {}),
        ("/settings/orders-export/stop_on/srv-1/", {}),
        ("/settings/orders-export/start_on/srv-1/", {}),
        ("/groups/nightly/enable/", {}),
        ("/site/1/freeze/", {"reason": "no"}),
        ("/pools/main/freeze/", {"reason": "no"}),
        ("/servers/srv-1/cordon/", {"reason": "no"}),
        ("/servers/srv-1/drain/", {}),
        ("/servers/srv-3/uncordon/", {}),
        ("/groups/nightly/disable/", {}),
        ("/groups/nightly/run/", {}),
        ("/groups/nightly/move/", {"member": "night-sum", "to": "up"}),
        ("/dead-letters/orders-export/give-back/", {"all": "1"}),
        ("/dead-letters/orders-export/give-back/", {"letter": str(letter)}),
    ]:
        assert client.post(path, data).status_code == 403, path
    assert ReplayJob.objects.count() == 1
    assert set(LaunchSetting.objects.filter(enabled=True).values_list("key", flat=True)) == {
        "orders-export", "orders-archive", "invoices", "mail-send", "night-load", "night-sum", "night-mail",
    }  # fmt: skip


def test_a_form_of_another_site_changes_nothing(world: World) -> None:
    client = signed_in(world, "operator", enforce_csrf_checks=True)

    for path, data in [
        ("/settings/orders-export/disable/", {}),
        ("/settings/stock-sync/enable/", {}),
        ("/settings/night-sum/run/", {}),
        ("/settings/night-sum/stop/", {}),
        ("/settings/orders-export/resume/srv-3/", {}),
        ("/settings/orders-export/stop_on/srv-1/", {}),
        ("/settings/orders-export/start_on/srv-1/", {}),
        ("/groups/nightly/enable/", {}),
        ("/site/1/freeze/", {"reason": "no"}),
        ("/pools/main/freeze/", {"reason": "no"}),
        ("/servers/srv-1/cordon/", {"reason": "no"}),
        ("/servers/srv-1/drain/", {}),
        ("/servers/srv-3/uncordon/", {}),
        ("/groups/nightly/disable/", {}),
        ("/groups/nightly/run/", {}),
        ("/groups/nightly/move/", {"member": "night-sum", "to": "up"}),
        ("/dead-letters/orders-export/give-back/", {"all": "1"}),
    ]:
        assert client.post(path, data).status_code == 403, path
    assert LaunchSetting.objects.get(key="orders-export").enabled
    assert ReplayJob.objects.count() == 1


def test_buttons_say_why_they_cannot_be_pressed(world: World) -> None:
    client = signed_in(world, "viewer")

    assert "Can disable launch settings" in client.get("/settings/orders-export/").content.decode()
    assert "Can enable launch settings" in client.get("/settings/stock-sync/").content.decode()
    assert "Can replay dead letters" in client.get("/dead-letters/orders-export/").content.decode()
    broken = signed_in(world, "operator").get("/settings/prices-import/").content.decode()
    assert "AMQ229204: address shop.prices exists as ANYCAST" in broken
