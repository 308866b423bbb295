"""Dates of the admin's own pages as the consoles write them: days before months, 24 hours, with their
zone."""

DATE_FORMAT = "j M Y"
MONTH_DAY_FORMAT = "j M"
DATETIME_FORMAT = "j M Y, H:i:s T"
SHORT_DATETIME_FORMAT = DATETIME_FORMAT
