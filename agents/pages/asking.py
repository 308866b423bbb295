"""Questions before something is done: a page that asks, and the POST that does it. Nothing happens by
looking."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.models import Destination, LaunchSetting, ScheduledGroup
from console.operations.inputs import StorableField
from console.operations.refusals import Refused
from console.ui.page import Text, page

# What a person acts on and somebody else deletes at the same moment.
GONE = (ScheduledGroup.DoesNotExist, LaunchSetting.DoesNotExist, Destination.DoesNotExist)


class ReasonForm(forms.Form):
    reason = StorableField(
        label=_("Why? (everybody sees it)"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"class": "reason", "rows": 3}),
    )


@dataclass(frozen=True, slots=True)
class Question:
    """`button` does what `title` asks. `tone`: primary or danger. `refusal`: why it cannot be done now."""

    title: Text
    texts: Sequence[Text]
    button: Text
    icon: str
    section: str
    back: str
    crumbs: list[tuple[Text, str]] = field(default_factory=list)
    tone: str = "primary"
    refusal: str = ""


def ask(
    request: HttpRequest,
    question: Question,
    act: Callable[[Any], Text],
    form: Callable[..., forms.Form] | None = None,
    **shown: Any,
) -> HttpResponseBase:
    """`act(form)` does it and answers what to say; what it refuses (Refused) is said instead. Then back; to
    the list where what it is about is gone. `shown` goes to the page that asks."""
    bound = form(request.POST) if form is not None and request.method == "POST" else form() if form else None
    if request.method != "POST" or (bound is not None and not bound.is_valid()):
        return page(
            request,
            "agents/question.html",
            title=question.title,
            section=question.section,
            crumbs=question.crumbs,
            question=question,
            form=bound,
            **shown,
        )
    try:
        messages.success(request, str(act(bound)))
    except Refused as refused:
        messages.error(request, refused.sentence)
    except GONE:
        messages.error(request, gettext("It was deleted meanwhile."))
        return HttpResponseRedirect(question.crumbs[0][1] if question.crumbs else question.back)
    return HttpResponseRedirect(question.back)
