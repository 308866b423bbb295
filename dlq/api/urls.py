"""Routes of the dlq app under /api/v1/."""

from django.urls import path

from dlq.api.audit import Audit
from dlq.api.letters import Letters, OneLetter
from dlq.api.remarks import EndFault, EndTaking, Faults, HandOver, Notes, Takings
from dlq.api.replays import OneReplay, Replays

urlpatterns = [
    path("audit/", Audit.as_view(), name="audit"),
    path("dead-letters/", Letters.as_view(), name="dead-letters"),
    path("dead-letters/<int:pk>/", OneLetter.as_view(), name="dead-letter"),
    path("known-faults/", Faults.as_view(), name="known-faults"),
    path("known-faults/<int:pk>/end/", EndFault.as_view(), name="known-fault-end"),
    path("notes/", Notes.as_view(), name="notes"),
    path("replays/", Replays.as_view(), name="replays"),
    path("replays/<uuid:pk>/", OneReplay.as_view(), name="replay"),
    path("takings/", Takings.as_view(), name="takings"),
    path("takings/<int:pk>/end/", EndTaking.as_view(), name="taking-end"),
    path("takings/<int:pk>/hand-over/", HandOver.as_view(), name="taking-hand-over"),
]
