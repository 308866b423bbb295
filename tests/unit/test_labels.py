"""Labels of settings: what is one, how they are written, changed and found."""

import pytest
from django.core.exceptions import ValidationError

from agents.models.labels import (
    MOST_LABELS,
    check_labels,
    has_labels,
    label_words,
    labels_of,
    relabelled,
    wanted_in,
)

LONG = "a" * 63


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("", {}),
        ("critical", {"critical": ""}),
        ("team=billing, critical", {"critical": "", "team": "billing"}),
        ("a=1\nb=2 c", {"a": "1", "b": "2", "c": ""}),
        ("app.example.org/tier=back_end-2.x", {"app.example.org/tier": "back_end-2.x"}),
        (f"{LONG}={LONG}", {LONG: LONG}),
        ("a=1, a=1", {"a": "1"}),
    ],
)
def test_a_line_of_labels_is_read_in_order(text: str, labels: dict[str, str]) -> None:
    assert labels_of(text) == labels
    assert list(labels_of(text)) == sorted(labels)
    assert labels_of(", ".join(label_words(labels))) == labels


@pytest.mark.parametrize(
    "text",
    [
        "=x",
        "-a",
        "a-",
        "a=-b",
        "a=b=c",
        "ä",
        "a/b/c",
        "/a",
        "a/",
        f"{LONG}a",
        f"a={LONG}a",
        "a=1, a=2",
        "<b>",
    ],
)
def test_what_is_no_label_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        labels_of(text)


def test_a_setting_has_so_many_labels_and_no_more() -> None:
    labels = {f"l{number}": "" for number in range(MOST_LABELS)}

    check_labels(labels)
    with pytest.raises(ValidationError, match="at most"):
        check_labels({**labels, "more": ""})


@pytest.mark.parametrize("value", [[], None, "a=b", {"a": 1}, {"a": None}, {1: "a"}, {"a": "b c"}, {"": "a"}])
def test_what_is_stored_is_texts_by_keys(value: object) -> None:
    with pytest.raises(ValidationError):
        check_labels(value)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("", True),
        ("team", True),
        ("team=billing", True),
        ("team=", False),
        ("critical=", True),
        ("critical", True),
        ("team=shop", False),
        ("team, critical", True),
        ("team, tier", False),
        ("TEAM", False),
    ],
)
def test_a_filter_finds_what_has_each_of_its_labels(wanted: str, found: bool) -> None:
    assert has_labels({"team": "billing", "critical": ""}, wanted_in(wanted)) is found
    assert not has_labels(None, ["team"])


@pytest.mark.parametrize(
    ("add", "remove", "labels"),
    [
        ("", "", {"team": "billing", "tier": "1"}),
        ("team=shop", "", {"team": "shop", "tier": "1"}),
        ("a", "tier", {"a": "", "team": "billing"}),
        ("", "tier=2, team=billing", {"tier": "1"}),
        ("tier=3", "tier", {"team": "billing", "tier": "3"}),
    ],
)
def test_labels_are_removed_then_added(add: str, remove: str, labels: dict[str, str]) -> None:
    found = relabelled({"tier": "1", "team": "billing"}, add, remove)

    assert found == labels and list(found) == sorted(labels)
