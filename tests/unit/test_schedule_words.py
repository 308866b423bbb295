"""A schedule as a person would say it, in both languages."""

import pytest
from django.utils import translation

from agents.models import Schedule
from agents.schedules.text import crontab_in_words, describe, interval_in_words

CRONTABS = [
    ("30 2 * * *", "every day at 02:30", "каждый день в 02:30"),
    ("*/5 * * * *", "every 5 minutes", "каждые 5 минут"),
    ("* * * * *", "every minute", "каждую минуту"),
    ("0 * * * *", "every hour", "каждый час"),
    ("15,45 * * * *", "every hour, minutes: 15, 45", "каждый час, минуты: 15, 45"),
    ("0 */2 * * *", "every 2 hours", "каждые 2 часа"),
    ("0 22 * * SUN", "on Sunday at 22:00", "по дням недели: воскресенье, в 22:00"),
    (
        "0 6 * JAN MON-FRI",
        "on Monday–Friday at 06:00, only in January",
        "по дням недели: понедельник–пятница, в 06:00, только в этих месяцах: январь",
    ),
    ("15 14 1,15 * *", "on day 1, 15 of the month at 14:15", "1, 15 числа месяца в 14:15"),
    ("0 0 L * *", "on the last day of the month at 00:00", "в последний день месяца в 00:00"),
    (
        "0 0 * * 5#2",
        "on Friday (no. 2 of the month) at 00:00",
        "по дням недели: пятница (№ 2 в месяце), в 00:00",
    ),
    (
        "0 0 13 * 5",
        "on day 13 of the month or on Friday at 00:00",
        "13 числа месяца или по дням недели: пятница; в 00:00",
    ),
    (
        "0 9-17 * * 1-5",
        "on Monday–Friday at minute 0 past hour 9–17",
        "по дням недели: понедельник–пятница, часы: 9–17; минуты: 0",
    ),
    ("*/10 8-18 * * *", "every 10 minutes past hour 8–18", "каждые 10 минут, часы: 8–18"),
]


@pytest.mark.parametrize(("crontab", "english", "russian"), CRONTABS)
def test_a_crontab_in_words(crontab: str, english: str, russian: str) -> None:
    with translation.override("en"):
        assert crontab_in_words(crontab, "Europe/Berlin") == f"{english}, Europe/Berlin"
    with translation.override("ru"):
        assert crontab_in_words(crontab, "Europe/Berlin") == f"{russian}, Europe/Berlin"


def test_an_interval_in_words() -> None:
    for seconds, text in (
        (30, "30 seconds"),
        (90, "90 seconds"),
        (600, "10 minutes"),
        (7200, "2 hours"),
        (172_800, "2 days"),
    ):
        with translation.override("en"):
            assert interval_in_words(seconds) == f"every {text}"


@pytest.mark.parametrize(
    ("crontab", "words"),
    [
        # Times.
        ("0 0 * * *", "every day at 00:00"),
        ("30 * * * *", "every hour, minutes: 30"),
        ("0,30 * * * *", "every 30 minutes"),
        ("1,31 * * * *", "every hour, minutes: 1, 31"),
        ("0-58 * * * *", "every hour, minutes: 0–58"),
        ("0,29 * * * *", "every hour, minutes: 0, 29"),
        ("0 0,12 * * *", "every 12 hours"),
        ("0 1,13 * * *", "every day at 01:00, 13:00"),
        ("15 */6 * * *", "every day at 00:15, 06:15, 12:15, 18:15"),
        ("0,30 1,2,3 * * *", "every day at 01:00, 01:30, 02:00, 02:30, 03:00, 03:30"),
        ("0 1-6,8 * * *", "at minute 0 past hour 1–6, 8"),
        ("5,10,15 1-3 * * *", "at minute 5, 10, 15 past hour 1–3"),
        ("*/30 0-3 * * *", "every 30 minutes past hour 0–3"),
        ("* 5 * * *", "every minute past hour 5"),
        # Days of the month.
        ("0 0 1-31 * *", "every day at 00:00"),
        ("0 0 1,2 * *", "on day 1, 2 of the month at 00:00"),
        ("0 0 1-3,5 * *", "on day 1–3, 5 of the month at 00:00"),
        ("0 0 1-3,5-7 * *", "on day 1–3, 5–7 of the month at 00:00"),
        ("0 0 LW * *", "on the last working day of the month at 00:00"),
        ("0 0 1,L * *", "on day 1 of the month, on the last day of the month at 00:00"),
        ("*/5 * 1 * *", "on day 1 of the month every 5 minutes"),
        ("0 */2 1 * *", "on day 1 of the month every 2 hours"),
        # Weekdays; weeks begin with Monday.
        ("0 0 * * 0-6", "every day at 00:00"),
        ("0 0 * * 7", "on Sunday at 00:00"),
        ("0 0 * * 6,0,1", "on Monday, Saturday, Sunday at 00:00"),
        ("0 0 * * 2-4", "on Tuesday–Thursday at 00:00"),
        ("0 0 * * 5L", "on the last Friday of the month at 00:00"),
        ("0 0 * * 0#1", "on Sunday (no. 1 of the month) at 00:00"),
        (
            "0 0 * * 1,5#2,3#1",
            ("on Monday, Wednesday (no. 1 of the month), Friday (no. 2 of the month) at 00:00"),
        ),
        ("* * * * SUN", "on Sunday every minute"),
        (
            "0 0 13 * */2",
            "on day 13 of the month, but only if the weekday is Tuesday, Thursday, Saturday, Sunday at 00:00",
        ),
        # Months.
        ("0 0 * 1-12 *", "every day at 00:00"),
        ("0 0 * 1-3,6,12 *", "every day at 00:00, only in January–March, June, December"),
    ],
)
def test_each_part_of_a_crontab_has_its_words(crontab: str, words: str) -> None:
    with translation.override("en"):
        assert crontab_in_words(crontab, "UTC") == f"{words}, UTC"


@pytest.mark.parametrize(
    ("seconds", "english", "russian"),
    [
        (1, "every 1 second", "каждую 1 секунду"),
        (61, "every 61 seconds", "каждую 61 секунду"),
        (60, "every minute", "каждую минуту"),
        (21 * 60, "every 21 minutes", "каждую 21 минуту"),
        (3600, "every hour", "каждый час"),
        (90_000, "every 25 hours", "каждые 25 часов"),
        (86_400, "every day", "каждый день"),
        (21 * 86_400, "every 21 days", "каждый 21 день"),
    ],
)
def test_one_is_a_word_of_its_own(seconds: int, english: str, russian: str) -> None:
    for language, words in (("en", english), ("ru", russian)):
        with translation.override(language):
            assert interval_in_words(seconds) == describe(Schedule(every_seconds=seconds)) == words


@pytest.mark.parametrize("language", ["en", "en-gb", None])
def test_names_of_days_are_written_large_in_english_and_without_a_language(language: str | None) -> None:
    with translation.override(language):
        assert (
            describe(Schedule(crontab="0 0 * 5 1", time_zone="UTC")) == "on Monday at 00:00, only in May, UTC"
        )
