"""Why a rule leaves letters out, and what it does, for people."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

OPERATION_WORDS: Mapping[str, Promise] = {
    "set_property": gettext_lazy("set a property"),
    "remove_property": gettext_lazy("remove a property"),
    "set_json": gettext_lazy("set a field of the JSON body"),
    "remove_json": gettext_lazy("remove a field of the JSON body"),
}


def reason(code: str) -> str:
    """Of a code of EditRefused that a rule may give for a letter; empty for another one."""
    words = {
        "no_json": _("the body is no JSON"),
        "pointer_missing": _("the body has nothing at the place that the rule names"),
        "unchanged": _("the rule changes nothing in it"),
        "locked": _("the rule touches what may not be changed in it"),
        "truncated": _("only the head of its body is kept here: it is too large to be edited"),
        "too_large": _("the edited body is too large"),
        "no_message": _("its bytes are no message"),
        "body_fixed": _("its body is no text that could be edited"),
        "bad_text": _("the text has characters that are no good Unicode"),
        "unsendable": _("the edited message cannot be sent"),
        "copy_sent": _("its edited copy was given back, but the letter itself stayed: discard it"),
    }
    return words.get(code, "")
