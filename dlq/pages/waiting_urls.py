"""Registers the pages of waiting messages."""

from dlq.pages import waiting, waiting_action, waiting_ask, waiting_give_up
from dlq.pages.audited import add_page


def register() -> None:
    add_page("settings/<str:key>/waiting/", waiting.waiting_page, "waiting")
    add_page("settings/<str:key>/waiting/ask/", waiting_ask.waiting_ask_page, "waiting_ask")
    add_page("settings/<str:key>/waiting/give-up/", waiting_give_up.give_up_page, "waiting_give_up")
    add_page("waiting-actions/<uuid:pk>/", waiting_action.waiting_action_page, "waiting_action")
    add_page("waiting-actions/<uuid:pk>/stop/", waiting_action.waiting_stop_page, "waiting_stop")
