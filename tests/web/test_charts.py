"""Charts tell their scale, and say nothing where there is nothing."""

from datetime import UTC, datetime

from django.utils.translation import override

from insights.pages.charts import Bar, bar_chart


def test_the_highest_bar_tells_its_value() -> None:
    bars = [Bar("1 Mar", 3, "three"), Bar("2 Mar", 1200, "many"), Bar("3 Mar", 1200, "as many")]
    with override("en"):
        drawn = bar_chart(bars, "Failures")
    assert drawn.count(">1,200</text>") == 1
    assert 'text-anchor="middle">1,200<' in drawn
    with override("ru"):
        assert ">1\N{NO-BREAK SPACE}200</text>" in bar_chart(bars, "Сбои")


def test_a_chart_of_nothing_has_no_scale() -> None:
    assert "<text" not in bar_chart([], "Failures")
    assert ">0</text>" not in bar_chart([Bar("1 Mar", 0, "none")], "Failures")


def test_a_bar_of_an_instant_says_it_so_that_the_page_can_write_it_in_another_zone() -> None:
    at = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    with override("en"):
        drawn = bar_chart([Bar("1 Mar", 3, "1 Mar 2026, 23:30:00 UTC: three", instant=at)], "Failures")

    moment = 'data-instant="2026-03-01T23:30:00+00:00" data-written="1 Mar 2026, 23:30:00 UTC"'
    assert f"<g {moment}><title>1 Mar 2026, 23:30:00 UTC: three</title>" in drawn
    assert f"<text {moment}" in drawn
    assert "data-instant" not in bar_chart([Bar("1 Mar", 3, "three")], "Failures")
