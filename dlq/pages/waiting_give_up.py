"""Before the message that blocks an ordered subscription goes to the dead letters: which it is, what follows,
why."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from agents.pages.asking import Question, ask
from console.audit.log import LONGEST_REASON, mark_kept
from console.operations.inputs import StorableField
from console.operations.refusals import Refused
from console.ui.page import Text, link
from dlq.pages.waiting import denied, setting_for, waiting_url
from dlq.waiting.asking import WaitingRefused
from dlq.waiting.blocking import blocking_of, give_up
from dlq.waiting.doing import NotAllowed, why_not


class GiveUpForm(forms.Form):
    """What the person saw: only that is meant."""

    message = forms.CharField(max_length=64, widget=forms.HiddenInput())
    attempt = forms.IntegerField(min_value=1, max_value=2**31 - 1, widget=forms.HiddenInput())
    reason = StorableField(
        label=gettext_lazy("Why? (everybody sees it)"),
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"class": "reason", "rows": 3}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
def give_up_page(request: HttpRequest, key: str) -> HttpResponseBase:
    setting, posted = setting_for(request, key), request.method == "POST"
    if not posted and (why := why_not(request.user, setting)):
        raise PermissionDenied(why)
    blocking, back = blocking_of(setting), waiting_url(key)
    if blocking is None and not posted:
        messages.info(request, _("No message blocks it now: %(key)s") % {"key": key})
        return HttpResponseRedirect(back)
    if posted and {"message", "attempt"} & GiveUpForm(request.POST).errors.keys():
        messages.error(
            request, _("The page did not name the message. Look again, and decide by what you see then.")
        )
        return HttpResponseRedirect(back)
    texts: list[Text] = []
    initial: dict[str, Any] = {}
    if blocking is not None:
        seen = blocking.blocked
        facts = {"message": seen.key, "attempt": seen.attempt, "server": blocking.server}
        texts.append(_("%(message)s: attempt %(attempt)s failed on %(server)s.") % facts)
        initial = {"message": seen.digest, "attempt": seen.attempt}
    texts += [
        _(
            "It becomes a dead letter of the setting, and the next message is handled. Given back, it goes "
            "to the end."
        ),
        _("Where it is tried again before its server hears of this, nothing happens to it."),
    ]
    question = Question(
        title=_("Send the first message of %(key)s to the dead letters?") % {"key": key},
        texts=texts,
        button=_("To the dead letters"),
        icon="letter",
        section="settings",
        back=back,
        crumbs=[
            (_("Settings"), link("settings")),
            (key, link("setting", key)),
            (_("Waiting messages"), back),
        ],
        tone="danger",
    )

    def act(form: Any) -> Text:
        said = form.cleaned_data
        try:
            give_up(
                setting,
                said["message"],
                said["attempt"],
                by=request.user,
                now=timezone.now(),
                reason=said["reason"],
            )
        except NotAllowed as refused:
            raise denied(refused) from refused
        except WaitingRefused as refused:
            told = Refused(refused.code, refused.reason, refused.what_to_do)
            mark_kept(told)
            raise told from refused
        return _("Its server sends it to the dead letters: %(key)s") % {"key": key}

    return ask(request, question, act, lambda data=None: GiveUpForm(data, initial=initial))
