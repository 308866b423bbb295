"""The page Insights in a real browser: empty, finished, running, failed, switched off; in both languages,
wide and narrow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from insights.models import BreakerSuggestion, InsightTable, PipelineRun, RetentionPlan
from tests.browser.driver import Browser, wait_for
from tests.web.factories import World
from tests.web.insight_rows import found, run_row
from tests.web.pipeline import use

pytestmark = pytest.mark.django_db(transaction=True)

TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
TROUBLE = ("Content Security Policy", "Uncaught", "Refused", "TypeError")
TEXT = "return document.querySelector('#content').innerText"


@pytest.fixture(autouse=True)
def switched_on(settings: Any, tmp_path: Path) -> None:
    use(settings, tmp_path, "well")


def check(browser: Browser, url: str, name: str, says: dict[str, str]) -> None:
    """In each language, wide and narrow: it says what it should, fits, and the browser has nothing to
    object."""
    for language, words in says.items():
        browser.cookie(settings.LANGUAGE_COOKIE_NAME, language)
        browser.open(url)
        for width in (1400, 800):
            browser.narrow(width, 1000)
            assert words in browser.run(TEXT), (name, language)
            assert browser.run(TOO_WIDE) <= 0, (name, language, width)
        assert not [each for each in browser.log() if any(word in each["message"] for word in TROUBLE)]


def test_every_state_of_the_page(live_server: Any, world: World, opened: Callable[..., Browser]) -> None:
    browser, page = opened("chief", width=1400, height=1000), f"{live_server.url}/insights/"
    check(browser, page, "empty", {"en": "Not computed yet.", "ru": "Ещё не вычислено."})
    done = found()
    check(browser, page, "finished", {"en": "Data until", "ru": "Данные до"})
    check(browser, f"{page}runs/{done.pk}/", "run", {"en": "Result rows", "ru": "Строк результатов"})
    said = {"en": "Activation health", "ru": "Работоспособность"}
    check(browser, f"{page}tables/activation_health/", "table", said)
    check(
        browser,
        f"{live_server.url}/settings/orders-export/",
        "setting",
        {"en": "Suggested", "ru": "Рекоменд"},
    )
    BreakerSuggestion.objects.all().delete()
    InsightTable.objects.filter(name="breaker_suggestions").delete()
    RetentionPlan.objects.update(rows_going=0)
    check(browser, page, "nothing-goes", {"en": "in the next 30", "ru": "В ближайшие 30 дней"})
    assert "В архиве ещё нет данных" in browser.run(TEXT)
    failed = run_row("failed", hours=0.5)
    check(browser, page, "failed", {"en": "The last run failed", "ru": "Последний запуск"})
    check(browser, f"{page}runs/{failed.pk}/", "failed-run", {"en": "no such day", "ru": "no such day"})
    run_row("running", hours=0.01)
    check(browser, page, "running", {"en": "59 %", "ru": "59 %"})


def test_a_running_one_moves_on_by_itself_and_is_cancelled(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    run = run_row("running", hours=0.01)
    browser = opened("operator", width=1400, height=1000)
    browser.open(f"{live_server.url}/insights/")
    bar = "return document.querySelector('#run-bar').innerText"
    assert "59 %" in browser.run(bar)
    stages = [{**stage, "state": "done"} for stage in run.stages[:3]] + run.stages[3:]
    PipelineRun.objects.filter(pk=run.pk).update(stages=stages)
    wait_for(lambda: "75 %" in browser.run(bar))

    browser.click("#cancel-run")
    wait_for(lambda: "cancelling" in browser.run(bar))
    assert PipelineRun.objects.get(pk=run.pk).cancel_asked_by == "operator"
    PipelineRun.objects.filter(pk=run.pk).update(state="cancelled", open=None, ended_at=timezone.now())
    wait_for(lambda: "Run now" in browser.run(bar))
    browser.click("#run-now")
    wait_for(lambda: "queued" in browser.run(bar))
    assert PipelineRun.objects.filter(open=True).count() == 1


def test_times_are_in_the_zone_of_the_reader(
    live_server: Any, world: World, opened: Callable[..., Browser]
) -> None:
    found()
    browser = opened("chief", width=1400, height=1000)
    browser.zone("Pacific/Kiritimati")
    for path in ("/insights/", "/insights/tables/activation_health/", "/settings/orders-export/"):
        browser.open(live_server.url + path)
        written = browser.run(
            "return [...document.querySelectorAll('time[data-show=local]')].map(each => each.textContent)"
        )
        assert written and all(each.endswith("GMT+14") for each in written), path

    [bar, *_more] = browser.run(
        "return [...document.querySelectorAll('.chart a g[data-instant]')].map("
        "each => [each.querySelector('title').textContent, each.closest('a').getAttribute('aria-label')])"
    )
    assert "GMT+14: " in bar[0] and bar[0] == bar[1]
