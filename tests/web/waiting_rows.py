"""An action on waiting messages that is over, as rows: for tests of what every page has in common."""

from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import User

from agents.models import LaunchSetting
from dlq.models.message_action import MessageResult, WaitingAction, WaitingItem, WaitingState


def make_action(setting: LaunchSetting, by: User, now: datetime, hostile: str) -> WaitingAction:
    at = now - timedelta(minutes=3)
    action = WaitingAction.objects.create(
        id=UUID(int=4243), setting=setting, setting_key=setting.key, kind="to_dlq", part="delayed", by=by,
        by_name=by.get_username(), reason=hostile, state=WaitingState.DONE, total=3, planned_all=True,
        created_at=at, finished_at=at,
    )  # fmt: skip
    for number, (key, fate) in enumerate(
        [("ID:w-1", MessageResult.DONE), (hostile, MessageResult.LEFT), ("", MessageResult.STAYED)]
    ):
        WaitingItem.objects.create(
            action=action, number=7000 + number, setting_key=setting.key, message_key=key, fate=fate, at=at
        )
    return action
