"""What kind of test each one is, by what it asks for. It gets exactly one of these markers; the dearest one
wins.

`kill` and `night` are given by hand, and `process` where no fixture says so. A parameter of a fixture can
bring a marker too: `house` of tests/broker reaches the real broker with one of its two parameters only.
"""

from collections.abc import Iterable

import pytest
from django.test import TransactionTestCase

# From the cheapest to the dearest.
KINDS = ("pure", "db", "broker", "process", "browser", "kill", "night")

# A fixture that starts something asks for one of these. What builds on it is known by them too.
BY_FIXTURE = {
    "django_db_setup": "db",
    "artemis": "broker",
    "child_processes": "process",
    "opened": "browser",
}
# Seconds that tests of a folder may take where others use the machine, too. Spark does not outlive a test
# that is cut off: all after it would fail.
LONG = {"network": 1200, "pipeline": 1200, "product": 1200}
BY_MARKER = {"django_db": "db"} | {name: name for name in KINDS}


def kind(fixtures: Iterable[str], markers: Iterable[str]) -> str:
    """The dearest of what a test asks for and of what is set by hand."""
    asked = {BY_FIXTURE.get(name, "pure") for name in fixtures}
    return max(asked | {BY_MARKER.get(name, "pure") for name in markers}, key=KINDS.index, default="pure")


def set_markers(items: list[pytest.Item]) -> None:
    """What was set by hand and is cheaper goes, also from modules: `-m process` selects no test that
    kills."""
    for item, found in [(item, _asked(item)) for item in items]:
        for node in item.listchain():
            node.own_markers = [mark for mark in node.own_markers if mark.name not in KINDS]
        item.add_marker(found)
        bound = LONG.get("".join(item.nodeid.split("/")[1:2]))
        if bound and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(bound))


def kind_of(item: pytest.Item) -> str:
    """As it was set."""
    return next(mark.name for mark in item.iter_markers() if mark.name in KINDS)


def _asked(item: pytest.Item) -> str:
    fixtures = {*getattr(item, "fixturenames", ())}
    if issubclass(getattr(item, "cls", None) or object, TransactionTestCase):
        fixtures.add("django_db_setup")  # pytest-django asks for it when the test runs
    return kind(fixtures, {mark.name for mark in item.iter_markers()})
