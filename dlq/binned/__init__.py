"""The bin: letters that were discarded, and originals of edited ones. They can be put back until they
expire."""

from datetime import datetime, timedelta

from django.conf import settings

from dlq.models import DeadLetter


def kept_for() -> timedelta:
    return timedelta(days=settings.MA_BIN_DAYS)


def expires_at(letter: DeadLetter) -> datetime:
    """When it is removed for good. The producer may have said an earlier time: that one the broker keeps."""
    by_us = letter.seen_at + kept_for()
    return by_us if letter.expires_at is None else min(by_us, letter.expires_at)
