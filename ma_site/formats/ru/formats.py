"""Dates of the admin's own pages as the consoles write them: days before months, 24 hours, with their
zone."""

DATE_FORMAT = "j b Y"
MONTH_DAY_FORMAT = "j b"
DATETIME_FORMAT = "j b Y, H:i:s T"
SHORT_DATETIME_FORMAT = DATETIME_FORMAT
