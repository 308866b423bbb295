"""Routes of the dlq app under /api/v1/."""

from django.urls import path

from dlq.api.letters import Letters, OneLetter
from dlq.api.replays import OneReplay, Replays

urlpatterns = [
    path("dead-letters/", Letters.as_view(), name="dead-letters"),
    path("dead-letters/<int:pk>/", OneLetter.as_view(), name="dead-letter"),
    path("replays/", Replays.as_view(), name="replays"),
    path("replays/<uuid:pk>/", OneReplay.as_view(), name="replay"),
]
