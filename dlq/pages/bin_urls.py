"""Registers the pages of the bin."""

from dlq.pages import bin, giveback
from dlq.pages.audited import add_page


def register() -> None:
    """Before the pages of settings: none has the key `bin`."""
    add_page("dead-letters/bin/", bin.bin_page, "bin")
    add_page("dead-letters/<str:key>/bin/", bin.bin_of_setting, "bin_of")
    add_page("dead-letters/<str:key>/put-back/", giveback.put_back_page, "put_back")
