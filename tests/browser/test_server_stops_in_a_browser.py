"""A setting that is stopped on one server of three, in a browser: the button, the question, who stopped it
where, and back again."""

from collections.abc import Callable
from typing import Any

from agents.models import Duty, Run, Server, ServerStop
from console.audit.models import AuditEntry
from tests.browser.driver import Browser, wait_for
from tests.web.factories import World

KEY = "invoices"
PAGE = f"/settings/{KEY}/"
PANEL = "return document.getElementById('runs').innerText"
BUTTONS = (
    "return [...document.querySelectorAll('[id^=do-stop_on], [id^=do-start_on]')].map((each) => "
    "[each.id.slice(3), each.innerText.trim()])"
)
# The newest row of each server, with its instance.
INSTANCE = """
    const rows = [...document.querySelectorAll('#runs tbody tr')].map((row) => row.cells);
    return rows.filter((cells) => cells[0].innerText.startsWith(arguments[0]))[0][1].innerText;
"""
TITLES = (
    "return [...document.querySelectorAll('#runs button[disabled]')].map((each) => [each.innerText.trim(), "
    "each.title])"
)


def wanted() -> list[str]:
    """Where it is meant to run."""
    there = Run.objects.filter(activation__setting__key=KEY, wanted=True)
    return sorted(there.values_list("server__name", flat=True))


def on_three_servers(world: World) -> None:
    Server.objects.filter(name="srv-3").update(duty=Duty.ACTIVE)
    assert wanted() == ["srv-1", "srv-2", "srv-3"]


def confirm(browser: Browser, live_server: Any) -> None:
    """The question of the page, which leads back."""
    browser.click("form .actions button[type=submit]")
    wait_for(lambda: browser.url() == live_server.url + PAGE and browser.run("return document.readyState"))


def test_it_is_stopped_on_one_server_of_three_and_started_there_again(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    on_three_servers(world)
    browser = opened("operator")
    browser.run("localStorage.setItem('ma.paused', '1')")
    browser.open(live_server.url + PAGE)
    assert sorted(browser.run(BUTTONS)) == [[f"stop_on-srv-{n}", "Stop here…"] for n in (1, 2, 3)]

    browser.click("#do-stop_on-srv-2")
    wait_for(lambda: browser.url().endswith(f"{PAGE}stop_on/srv-2/"))
    question = browser.run("return document.querySelector('main, #content').innerText")
    assert f"Stop {KEY} on srv-2?" in question
    assert "srv-1" in question and "srv-3" in question, "who goes on"
    browser.write("[name=reason]", "disk is full")
    confirm(browser, live_server)

    panel = browser.run(PANEL)
    assert "Stopped on srv-2" in panel and "by operator: disk is full" in panel
    assert "stopped here" in browser.run(INSTANCE, "srv-2")
    for other in ("srv-1", "srv-3"):
        assert "stop" not in browser.run(INSTANCE, other).replace("Stop here…", "")
    assert sorted(browser.run(BUTTONS)) == [
        ["start_on-srv-2", "Start here…"], ["stop_on-srv-1", "Stop here…"], ["stop_on-srv-3", "Stop here…"],
    ]  # fmt: skip
    assert wanted() == ["srv-1", "srv-3"]

    browser.click("#do-start_on-srv-2")
    wait_for(lambda: browser.url().endswith(f"{PAGE}start_on/srv-2/"))
    confirm(browser, live_server)
    assert "Stopped on" not in browser.run(PANEL)
    assert sorted(browser.run(BUTTONS)) == [[f"stop_on-srv-{n}", "Stop here…"] for n in (1, 2, 3)]
    assert wanted() == ["srv-1", "srv-2", "srv-3"]
    done = AuditEntry.objects.filter(setting_key=KEY, result="done").order_by("pk")
    assert list(done.values_list("action", "by_name")) == [
        ("setting.stop_on", "operator"), ("setting.start_on", "operator"),
    ]  # fmt: skip


def test_a_viewer_sees_who_stopped_it_and_gets_no_button(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    on_three_servers(world)
    stopped = Server.objects.get(name="srv-2")
    ServerStop.objects.create(
        setting=world.settings[KEY], server=stopped, by=world.people["operator"], reason="disk is full"
    )
    browser = opened("viewer")
    browser.open(live_server.url + PAGE)

    assert "by operator: disk is full" in browser.run(PANEL)
    assert browser.run(BUTTONS) == []
    shut = browser.run(TITLES)
    assert sorted(text for text, _title in shut) == ["Start here…", "Stop here…", "Stop here…"]
    assert all("Can stop activations" in title for _text, title in shut)
    for verb, server in (("stop_on", "srv-1"), ("start_on", "srv-2")):
        browser.open(f"{live_server.url}{PAGE}{verb}/{server}/")
        assert browser.run("return document.querySelectorAll('form .actions button').length") == 0
        assert "Can stop activations" in browser.run("return document.querySelector('main').innerText")
    assert (wanted(), ServerStop.objects.count()) == (["srv-1", "srv-2", "srv-3"], 1)
