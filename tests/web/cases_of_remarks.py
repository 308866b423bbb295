"""A row of each operation of dlq/remarks, with which it can be done."""

from typing import Any

from django.contrib.auth.models import User

from agents.models import Pool
from dlq.annotations import AddNote, EndTaking, HandOver, MuteLetters, Take, Unmute
from dlq.models import KnownFault, Note, Taking
from dlq.models.annotation import Annotation
from tests.web.operation_case import Case
from tests.web.rows import make_setting

SEE, GIVE_BACK = "dlq.view_deadletter", "dlq.give_back"


def about(model: type[Annotation]) -> Any:
    """One that is not stored yet."""
    return lambda pool: model(setting_key=make_setting(pool, "orders").key, message_key="ID:7")


def fault(pool: Pool) -> KnownFault:
    return KnownFault.objects.create(setting_key=make_setting(pool, "orders").key)


def taking(pool: Pool) -> Taking:
    return Taking.objects.create(setting_key=make_setting(pool, "orders").key)


def to_another(pool: Pool) -> dict[str, Any]:
    return {"to": User.objects.create_superuser("other", password=None).username}


def last(model: type[Annotation], name: str, **more: Any) -> Any:
    """The entry names the row that was written."""
    return lambda: {name: model._default_manager.latest("pk").pk, **more}


CASES = (
    Case(AddNote, about(Note), GIVE_BACK, {"text": "x"}, detail=last(Note, "note"), seeing=SEE),
    Case(MuteLetters, about(KnownFault), GIVE_BACK, detail=last(KnownFault, "fault"), seeing=SEE),
    Case(Unmute, fault, GIVE_BACK, detail=last(KnownFault, "fault"), seeing=SEE),
    Case(Take, about(Taking), GIVE_BACK, detail=last(Taking, "taking"), seeing=SEE),
    Case(HandOver, taking, GIVE_BACK, to_another, detail=last(Taking, "taking", to="other"), seeing=SEE),
    Case(EndTaking, taking, GIVE_BACK, detail=last(Taking, "taking"), seeing=SEE),
)
