"""Importing messages into the subscription of one setting, for tests: a file, what is in it, then it is
sent."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from agents.models import LaunchSetting
from agents.provisioning.queue_counts import asked_now
from broker.port import Message
from console.audit.log import LONGEST_REASON
from console.audit.refusals import audited
from console.operations.operation import check_allowed, perform
from console.operations.refusals import NotAllowed, Refused, WronglyAsked
from console.rest.body_limits import FILE, takes_up_to
from console.ui.amounts import number
from console.ui.page import link, page
from dlq.edit.rules.body_text import text_of_body
from dlq.imports.operations import ImportMessages, plan
from dlq.imports.rules import MOST, ImportFile, parcel_of
from dlq.pages.page_head import crumbs_of
from dlq.subscriptions.operations import settings_seen

# Of a file that goes through a page, which carries it in its form; larger ones go over REST or the command
# line.
LARGEST = 1024 * 1024
SHOWN = 10
LOOK, CONFIRM = "look", "confirm"


@takes_up_to(FILE)
@require_http_methods(["GET", "HEAD", "POST"])
@audited(ImportMessages.code)
def import_page(request: HttpRequest, key: str) -> HttpResponseBase:
    """`step` of a POST: `look` at what the file holds, `confirm` what was looked at."""
    setting = get_object_or_404(settings_seen(request.user), key=key)
    if request.method != "POST":
        if why := ImportMessages.permission.why_not(request.user, setting):
            raise NotAllowed(why)
        return _form(request, setting)
    check_allowed(ImportMessages, setting, request.user)
    text = ""
    try:
        text = _content(request)
        parcel = parcel_of(text.encode())
    except WronglyAsked as wrong:
        return _form(request, setting, text, wrong)
    if request.POST.get("step") != CONFIRM:
        return _check(request, setting, text, parcel)
    if not request.POST.get("known"):
        return _check(request, setting, text, parcel, unticked=True)
    return _send(request, setting, text, parcel)


def _content(request: HttpRequest) -> str:
    """Raises WronglyAsked."""
    file = request.FILES.get("file")
    content = (
        bytes(file.read(LARGEST + 1)) if file else request.POST.get("lines", "").encode("utf-8", "replace")
    )
    if len(content) > LARGEST:
        reason = _(
            "The file is too large: the page accepts at most %(n)s bytes. Use REST or ./ma manage dlq import."
        )
        raise WronglyAsked("too_large", reason % {"n": number(LARGEST)})
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WronglyAsked("bad_lines", _("The file is not UTF-8. Save it as UTF-8.")) from error


def _form(
    request: HttpRequest, setting: LaunchSetting, text: str = "", wrong: WronglyAsked | None = None
) -> HttpResponseBase:
    return page(
        request,
        "dlq/import.html",
        title=_("Import messages into %(key)s") % {"key": setting.key},
        section="dead_letters",
        crumbs=crumbs_of(setting.key),
        setting=setting,
        text=text,
        most=number(MOST),
        problem=wrong.reason if wrong else "",
        problems=wrong.more.get("problems", ()) if wrong else (),
    )


def _check(
    request: HttpRequest, setting: LaunchSetting, text: str, parcel: ImportFile, *, unticked: bool = False
) -> HttpResponseBase:
    wanted = plan(setting, parcel)
    return page(
        request,
        "dlq/import_check.html",
        title=_("Send these messages to %(key)s?") % {"key": setting.key},
        section="dead_letters",
        crumbs=[*crumbs_of(setting.key), (_("Import"), link("import_letters", setting.key))],
        setting=setting,
        text=text,
        count=len(parcel.messages),
        size=parcel.size,
        shown=[_row(n, message) for n, message in enumerate(parcel.messages[:SHOWN], 1)],
        more=max(0, len(parcel.messages) - SHOWN),
        done=wanted.done,
        stopping=_stopping(setting),
        unticked=unticked,
        reason=request.POST.get("reason", ""),
        longest=LONGEST_REASON,
    )


def _stopping(setting: LaunchSetting) -> str:
    """Returns why these messages may not wait although the setting is switched off; empty where they will."""
    if setting.enabled or not setting.takes_messages:
        return ""
    figures = asked_now(setting)
    if figures.stale or figures.consumers is None:
        return _(
            "Disabled, but the broker is not responding: consumers may still be open and could "
            "process these messages."
        )
    text = ngettext(
        "Stopping, %(n)s consumer open: it could still process these messages. Import the "
        "messages after it closes.",
        "Stopping, %(n)s consumers open: they could still process these messages. Import the "
        "messages after the consumers close.",
        figures.consumers,
    )
    return text % {"n": number(figures.consumers)} if figures.consumers else ""


def _row(n: int, message: Message) -> tuple[int, str, int, str]:
    text = text_of_body(message)
    return n, text if text is not None else _("bytes"), len(message.properties), message.body.type


def _send(request: HttpRequest, setting: LaunchSetting, text: str, parcel: ImportFile) -> HttpResponseBase:
    reason, again = request.POST.get("reason", "").strip()[:LONGEST_REASON], bool(request.POST.get("again"))
    wanted = plan(setting, parcel)
    try:
        done = perform(ImportMessages, setting, request.user, wanted=wanted, again=again, reason=reason)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return _check(request, setting, text, parcel)
    messages.success(request, str(done.message))
    return HttpResponseRedirect(link("setting", setting.key))
