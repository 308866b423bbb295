"""Registers the pages on which letters are edited."""

from agents.pages.consoles import add_page
from dlq.pages import edit, edit_rule


def register() -> None:
    add_page("letters/<int:pk>/edit/", edit.edit_page, "edit_letter")
    add_page("dead-letters/<str:key>/edit/", edit_rule.edit_letters_page, "edit_letters")
