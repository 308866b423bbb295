"""Addresses of this app: its pages and panels, which `register` adds, and its routes under /api/v1/."""

from typing import Any

from django.urls import path
from rest_framework.routers import SimpleRouter

from agents.hooks import trip_takers
from console.audit.refusals import LOOKS_BESIDE_FILES, add_audited_page, audited
from console.operations.web import add_operations
from console.ui.page import View, add_page, register_panel
from dlq import saved_filters
from dlq.annotations import AddNote, EndTaking, HandOver, MuteLetters, Take, Unmute
from dlq.api.annotations import Faults, Notes, Takings
from dlq.api.dead_letters import Letters, OneLetter
from dlq.api.edit import EditLetter, EditLetters
from dlq.api.files import ExportLetters, Imports
from dlq.api.foreign_queues import ForeignQueue, ForeignQueues
from dlq.api.full_body import WholeBody, WholeLetter
from dlq.api.groups import DeadLetterGroups
from dlq.api.preflight import Preflight
from dlq.api.replays import ReplayItems, Replays, ReplayViewSet
from dlq.api.subscriptions import (
    BlockingMessage,
    OneWaitingAction,
    StopWaiting,
    Waiting,
    WaitingActions,
    WaitingItems,
)
from dlq.exports import EXPORT
from dlq.full_body.operations import CancelFetch, FetchBody
from dlq.models import Action
from dlq.pages import groups, holds, imports, message_actions, preflight, queues, replay, subscriptions, trash
from dlq.pages.annotations import AnnotationPage, takers_of_trips, trip_panel
from dlq.pages.dead_letters import case, dead_letter, dead_letter_list, export, full_body
from dlq.pages.edit import message, rule
from dlq.pages.queues import setting_panel
from dlq.queues.operations import UnfollowQueue
from dlq.replay.creation import CODES, EDIT_OF_ONE
from dlq.replay.operations import ON_REPLAYS
from dlq.saved_filters import OneSavedLetterFilter, SavedLetterFilters
from dlq.subscriptions.operations import CancelAction, GiveUpBlocked

# The first that fits an address is taken. Its refusals have its name in the audit, or the last of these.
PAGES: tuple[tuple[str, View, str] | tuple[str, View, str, str], ...] = (
    # Before the pages of settings: none has the key `bin`.
    ("dead-letters/bin/", trash.trash_page, "bin"),
    ("dead-letters/<str:key>/bin/", trash.trash_of_setting, "bin_of"),
    ("dead-letters/", queues.overview, "dead_letters"),
    ("letters/", dead_letter_list.all_letters, "all_dead_letters"),
    ("letters/groups/", groups.all_groups, "all_letter_groups"),
    ("dead-letters/<str:key>/", dead_letter_list.letter_list, "dead_letters_of"),
    ("dead-letters/<str:key>/groups/", groups.groups_of_setting, "letter_groups"),
    *(
        (f"dead-letters/<str:key>/{part}/", preflight.asking_page(action), name, CODES[action])
        for part, name, action in (
            ("give-back", "give_back", Action.GIVE_BACK),
            ("redirect", "redirect", Action.REDIRECT),
            ("discard", "discard", Action.DISCARD),
            ("put-back", "put_back", Action.PUT_BACK),
        )
    ),
    ("foreign-queues/", queues.foreign_page, "foreign_queues"),
    ("letters/<int:pk>/", dead_letter.letter_page, "letter"),
    ("letters/<int:pk>/whole/body/", full_body.whole_body, "whole_body"),
    ("letters/<int:pk>/body/", dead_letter.letter_body, "letter_body"),
    ("cases/", case.case_page, "case"),
    ("replays/", replay.replay_list, "replays"),
    ("replays/<uuid:pk>/", replay.replay_page, "replay"),
    ("letters/<int:pk>/edit/", message.edit_page, "edit_letter", EDIT_OF_ONE),
    ("dead-letters/<str:key>/edit/", rule.edit_letters_page, "edit_letters", CODES[Action.EDIT]),
    ("dead-letters/<str:key>/import/", imports.import_page, "import_letters"),
    ("settings/<str:key>/waiting/", subscriptions.waiting_page, "waiting"),
    ("settings/<str:key>/waiting/ask/", message_actions.waiting_ask_page, "waiting_ask"),
    ("waiting-actions/<uuid:pk>/", subscriptions.waiting_action_page, "waiting_action"),
)


def register() -> None:
    for page in PAGES:
        add_audited_page(*page)
    exports = audited(EXPORT, LOOKS_BESIDE_FILES)(export.export_page)
    for route in ("letters/export/", "dead-letters/<str:key>/export/"):
        add_page(route, exports, "export_letters")
    add_operations(*ON_REPLAYS)
    add_operations(GiveUpBlocked, CancelAction, FetchBody, CancelFetch, UnfollowQueue)
    add_operations(AddNote, MuteLetters, Unmute, Take, HandOver, EndTaking, kind=AnnotationPage)
    saved_filters.pages.register()
    register_panel("setting", 20, setting_panel)
    register_panel("setting_notes", 5, holds.note_of_setting)
    register_panel("trip", 20, trip_panel)
    trip_takers.implement(takers_of_trips)


LISTED: dict[str, Any] = {"get": "list", "post": "create"}
router = SimpleRouter(use_regex_path=False)
router.register("replays", ReplayViewSet, basename="replay")

urlpatterns = [
    *router.urls,
    path("dead-letters/", Letters.as_view(), name="dead-letters"),
    path("dead-letters/<int:pk>/", OneLetter.as_view(), name="dead-letter"),
    path("dead-letters/<int:pk>/whole/", WholeLetter.as_view(), name="dead-letter-whole"),
    path("dead-letters/<int:pk>/whole/body/", WholeBody.as_view(), name="dead-letter-whole-body"),
    path("dead-letters/<int:pk>/edit/", EditLetter.as_view(), name="dead-letter-edit"),
    path("dead-letters/edit/", EditLetters.as_view(), name="dead-letters-edit"),
    path("dead-letter-groups/", DeadLetterGroups.as_view(), name="dead-letter-groups"),
    path("foreign-queues/", ForeignQueues.as_view(), name="foreign-queues"),
    path("foreign-queues/<int:pk>/", ForeignQueue.as_view(), name="foreign-queue"),
    path("dead-letters/export/", ExportLetters.as_view(), name="dead-letters-export"),
    path("imports/", Imports.as_view(), name="imports"),
    path("known-faults/", Faults.as_view(LISTED), name="known-faults"),
    path("known-faults/<int:pk>/end/", Faults.as_view({"post": "unmute"}), name="known-fault-end"),
    path("notes/", Notes.as_view(LISTED), name="notes"),
    path("preflight/", Preflight.as_view(), name="preflight"),
    path("replays/", Replays.as_view(), name="replays"),
    path("replays/<uuid:pk>/letters/", ReplayItems.as_view(), name="replay-letters"),
    path("saved-filters/", SavedLetterFilters.as_view(), name="saved-filters"),
    path("saved-filters/<int:pk>/", OneSavedLetterFilter.as_view(), name="saved-filter"),
    path("takings/", Takings.as_view(LISTED), name="takings"),
    path("takings/<int:pk>/end/", Takings.as_view({"post": "end"}), name="taking-end"),
    path("takings/<int:pk>/hand-over/", Takings.as_view({"post": "hand_over"}), name="taking-hand-over"),
    path("settings/<str:key>/waiting/", Waiting.as_view(), name="waiting"),
    path("settings/<str:key>/blocking/", BlockingMessage.as_view(), name="blocking"),
    path("waiting-actions/", WaitingActions.as_view(), name="waiting-actions"),
    path("waiting-actions/<uuid:pk>/", OneWaitingAction.as_view(), name="waiting-action"),
    path("waiting-actions/<uuid:pk>/messages/", WaitingItems.as_view(), name="waiting-action-messages"),
    path("waiting-actions/<uuid:pk>/stop/", StopWaiting.as_view(), name="waiting-action-stop"),
]
