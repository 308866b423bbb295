"""Routes of the dlq app under /api/v1/."""

from typing import Any

from django.urls import path
from rest_framework.routers import SimpleRouter

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
from dlq.saved_filters import OneSavedLetterFilter, SavedLetterFilters

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
