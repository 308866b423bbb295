"""A schedule as a person would say it, in both languages."""

import pytest
from django.utils import translation

from agents.services.schedule_words import crontab_in_words, interval_in_words

CRONTABS = [
    ("30 2 * * *", "every day at 02:30", "каждый день в 02:30"),
    ("*/5 * * * *", "every 5 minutes", "каждые 5 минут"),
    ("* * * * *", "every minute", "каждую минуту"),
    ("0 * * * *", "every hour", "каждый час"),
    ("15,45 * * * *", "every hour at minute 15, 45", "каждый час в минуты 15, 45"),
    ("0 */2 * * *", "every 2 hours", "каждые 2 часа"),
    ("0 22 * * SUN", "on Sunday at 22:00", "по дням недели: воскресенье, в 22:00"),
    (
        "0 6 * JAN MON-FRI",
        "on Monday–Friday at 06:00, only in January",
        "по дням недели: понедельник–пятница, в 06:00, только в месяцы: январь",
    ),
    ("15 14 1,15 * *", "on day 1, 15 of the month at 14:15", "1, 15 числа месяца в 14:15"),
    ("0 0 L * *", "on the last day of the month at 00:00", "в последний день месяца в 00:00"),
    ("0 0 * * 5#2", "on Friday no. 2 of the month at 00:00", "по дням недели: пятница № 2 месяца, в 00:00"),
    (
        "0 0 13 * 5",
        "on day 13 of the month or on Friday at 00:00",
        "13 числа месяца или по дням недели: пятница; в 00:00",
    ),
    (
        "0 9-17 * * 1-5",
        "on Monday–Friday at minute 0 of the hours 9–17",
        "по дням недели: понедельник–пятница, в минуты 0 часов 9–17",
    ),
    ("*/10 8-18 * * *", "every 10 minutes in the hours 8–18", "каждые 10 минут в часы 8–18"),
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
