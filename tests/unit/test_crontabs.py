"""What is a crontab and what a time zone, what each field expands to, and what is said of the others."""

import zoneinfo

import pytest
from django.core.exceptions import ValidationError

from agents import crontab as crontabs
from agents.crontab import (
    LAST_DAY,
    LAST_WORKDAY,
    Fields,
    check_crontab,
    check_time_zone,
    crontab_fields,
    time_zones,
)

NONE: frozenset[tuple[int, int]] = frozenset()


def test_a_star_is_everything() -> None:
    assert crontab_fields("* * * * *") == Fields(
        frozenset(range(60)), crontabs.ALL_HOURS, crontabs.ALL_DAYS, crontabs.ALL_MONTHS,
        crontabs.ALL_WEEKDAYS, NONE, either=False,
    )  # fmt: skip


def test_each_field_is_expanded() -> None:
    assert crontab_fields("5,50-52 */8 1,L,LW JAN-MAR,12 *") == Fields(
        frozenset({5, 50, 51, 52}), frozenset({0, 8, 16}), frozenset({1, LAST_DAY, LAST_WORKDAY}),
        frozenset({1, 2, 3, 12}), crontabs.ALL_WEEKDAYS, NONE, either=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("field", "weekdays", "nth"),
    [
        ("0", {0}, set()), ("7", {0}, set()), ("sun", {0}, set()), ("5-7", {5, 6, 0}, set()),
        ("1,7#2", {1}, {(0, 2)}), ("FRI#1,6L", set(), {(5, 1), (6, LAST_DAY)}),
        ("7L", set(), {(0, LAST_DAY)}),
    ],
)  # fmt: skip
def test_weekdays_count_from_0_which_is_sunday_as_7_is(
    field: str, weekdays: set[int], nth: set[tuple[int, int]]
) -> None:
    fields = crontab_fields(f"0 0 * * {field}")
    assert (set(fields.weekdays), set(fields.nth_weekdays)) == (weekdays, nth)


@pytest.mark.parametrize(
    ("crontab", "either"),
    [("0 0 1 * 5", True), ("0 0 * * 5", False), ("0 0 1 * *", False), ("0 0 */2 * 5", False)],
)
def test_either_day_is_enough_where_both_are_restricted(crontab: str, either: bool) -> None:
    assert crontab_fields(crontab).either is either


@pytest.mark.parametrize("crontab", ["30 2 * * *", " 30  2 29 2 * ", "0 0 31 2 5", "0 0 L * mon-fri"])
def test_what_comes_once_at_least_is_a_crontab(crontab: str) -> None:
    check_crontab(crontab)


@pytest.mark.parametrize(
    ("crontab", "code", "text"),
    [
        ("", "crontab_fields", "A crontab needs five fields"),
        ("@daily", "crontab_fields", "A crontab needs five fields"),
        ("* * * *", "crontab_fields", "A crontab needs five fields"),
        ("0 * * * * *", "crontab_fields", "A crontab needs five fields"),
        ("61 * * * *", "crontab", "Invalid value in the crontab field “minute”."),
        ("*/0 * * * *", "crontab", "Invalid value in the crontab field “minute”."),
        ("* 24 * * *", "crontab", "Invalid value in the crontab field “hour”."),
        ("* * 0 * *", "crontab", "Invalid value in the crontab field “day of month”."),
        ("* * 32 2 *", "crontab", "Invalid value in the crontab field “day of month”."),
        ("* * 31 13 *", "crontab", "Invalid value in the crontab field “month”."),
        ("* * 31 2 8", "crontab", "Invalid value in the crontab field “day of week”."),
        ("* * * * MON-XYZ", "crontab", "Invalid value in the crontab field “day of week”."),
        ("* * 31 2 *", "crontab_never", "“* * 31 2 *” never runs: no calendar day matches it."),
        ("1 2 30-31 2 *", "crontab_never", "“1 2 30-31 2 *” never runs: no calendar day matches it."),
        ("0 0 31 4,6 */2", "crontab_never", "“0 0 31 4,6 */2” never runs: no calendar day matches it."),
        ("0 0 */31 * 1#5", "crontab_never", "“0 0 */31 * 1#5” never runs: no calendar day matches it."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_crontab_is_said(crontab: str, code: str, text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        check_crontab(crontab)
    assert refused.value.code == code
    assert str(refused.value.messages[0]).startswith(text)


@pytest.mark.parametrize("field", range(5))
def test_a_number_too_long_to_be_read_is_refused_as_any_other(field: int) -> None:
    fields = ["*"] * 5
    fields[field] = "9" * 5000
    for check in (check_crontab, crontab_fields):
        with pytest.raises(ValidationError) as refused:
            check(" ".join(fields))
        assert refused.value.code == "crontab"


def test_time_zones_are_those_of_the_system_in_order() -> None:
    found = time_zones()
    assert set(found) == zoneinfo.available_timezones() - {"Factory", "localtime"}
    assert list(found) == sorted(found) and {"UTC", "Europe/Berlin", "Asia/Yekaterinburg"} <= set(found)


@pytest.mark.parametrize(
    "name", ["Europe/Atlantis", "localtime", "Factory", "", "../etc/passwd", "europe/berlin"]
)
def test_what_is_no_time_zone_is_refused_by_name(name: str) -> None:
    check_time_zone("Europe/Berlin")
    with pytest.raises(ValidationError) as refused:
        check_time_zone(name)
    text = f"Unknown time zone “{name}”. Use a name such as Europe/Berlin or UTC."
    assert (refused.value.code, refused.value.messages) == ("unknown_time_zone", [text])
