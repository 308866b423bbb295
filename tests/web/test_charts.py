"""Charts tell their scale, and say nothing where there is nothing."""

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
