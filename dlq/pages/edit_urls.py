"""Registers the pages on which letters are edited."""

from agents.pages.consoles import add_page
from dlq.pages import edit


def register() -> None:
    add_page("letters/<int:pk>/edit/", edit.edit_page, "edit_letter")
