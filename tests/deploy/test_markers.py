import pytest

from tests.markers import KINDS, kind


@pytest.mark.parametrize(
    ("fixtures", "markers", "expected"),
    [
        ([], [], "pure"),
        (["tmp_path", "monkeypatch"], ["parametrize", "both_databases"], "pure"),
        ([], ["django_db", "both_databases"], "db"),
        (["client", "db", "django_db_setup"], [], "db"),
        (["stage", "artemis", "django_db_setup"], [], "broker"),
        (["redis_server", "child_processes"], ["django_db"], "process"),
        (["house"], ["broker"], "broker"),
        (["opened", "django_db_setup", "child_processes"], [], "browser"),
        (["artemis", "child_processes"], ["kill"], "kill"),
        (["artemis"], ["kill", "night"], "night"),
        (["artemis"], ["process"], "process"),
        (["artemis"], ["db"], "broker"),
    ],
)
def test_the_dearest_of_what_a_test_asks_for_wins(
    fixtures: list[str], markers: list[str], expected: str
) -> None:
    assert kind(fixtures, markers) == expected


def test_every_test_of_this_session_has_one_kind(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        assert len([mark for mark in item.iter_markers() if mark.name in KINDS]) == 1, item.nodeid


@pytest.mark.process
@pytest.mark.db
def test_a_cheaper_marker_that_was_set_by_hand_goes(request: pytest.FixtureRequest) -> None:
    assert [mark.name for mark in request.node.iter_markers() if mark.name in KINDS] == ["process"]
