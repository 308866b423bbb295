"""Registers the pages on which letters are edited, exported to files, and messages imported."""

from dlq.pages import edit, edit_rule, export, imports
from dlq.pages.audited import add_page


def register() -> None:
    add_page("letters/<int:pk>/edit/", edit.edit_page, "edit_letter")
    add_page("letters/export/", export.export_page, "export_letters")
    add_page("dead-letters/<str:key>/edit/", edit_rule.edit_letters_page, "edit_letters")
    add_page("dead-letters/<str:key>/export/", export.export_page, "export_letters")
    add_page("dead-letters/<str:key>/import/", imports.import_page, "import_letters")
