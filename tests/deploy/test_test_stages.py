from deploy.commands.test import EVERYTHING, stages


def test_without_arguments_everything_runs() -> None:
    assert stages(()) == EVERYTHING
    assert [stage.name for stage in EVERYTHING] == ["ruff", "mypy", "imports", "tests", "tests, PostgreSQL"]


def test_arguments_go_to_pytest_alone() -> None:
    (stage,) = stages(("tests/unit", "-k", "breaker"))
    assert stage.command == ("pytest", "tests/unit", "-k", "breaker")
    assert stage.settings == {}


def test_long_campaigns_have_no_time_limit() -> None:
    (stage,) = stages(("--long",))
    assert stage.command == ("pytest", "--timeout=0", "tests/acceptance/test_kills.py")
    assert stage.settings == {"MA_TEST_LONG": "1"}


def test_a_long_campaign_can_be_chosen() -> None:
    (stage,) = stages(("--long", "-k", "kills"))
    assert stage.command == ("pytest", "--timeout=0", "-k", "kills")
