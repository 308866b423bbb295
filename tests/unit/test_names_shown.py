"""Names of types as pages show them."""

from console.ui.text import visible_name


def test_a_name_is_broken_behind_its_points() -> None:
    assert visible_name("requests.exceptions.ConnectionError") == (
        "requests.<wbr>exceptions.<wbr>ConnectionError"
    )


def test_a_hostile_name_is_cut_and_escaped() -> None:
    assert visible_name("<a.b>") == "&lt;a.<wbr>b&gt;"
    assert visible_name("a.b" * 100, limit=3) == 'a.<wbr>b <span class="quiet">… +297</span>'
