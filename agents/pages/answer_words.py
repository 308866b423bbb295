"""What servers say of the end of a delivery that waited for an answer, in the reader's language. A text that
is not known here is shown as it is."""

import re

from django.utils.translation import gettext_lazy as _

_TEXTS = (
    (r"No answer came within (?P<n>\S+) s\.", _("No answer came within %(n)s s.")),
    (r"The delivery was answered ROLLBACK\.", _("The delivery was answered ROLLBACK.")),
    (r"Its handling failed\.", _("Its handling failed.")),
    (r"It was given back: the run stops\.", _("It was given back: the run stops.")),
    (
        r"The connection was lost while it waited; the message comes back\.",
        _("The connection was lost while it waited; the message comes back."),
    ),
    (
        r"The connection was lost while it was being committed: it is committed, or the message comes back\.",
        _(
            "The connection was lost while it was being committed: it is committed, or the message comes "
            "back."
        ),
    ),
    (
        r"The run ended while it waited; the message comes back\.",
        _("The run ended while it waited; the message comes back."),
    ),
    (
        r"The container ended while it waited; the message comes back\.",
        _("The container ended while it waited; the message comes back."),
    ),
    (
        r"The container ended while it was being committed: it is committed, or the message comes back\.",
        _("The container ended while it was being committed: it is committed, or the message comes back."),
    ),
    (
        r"It is not open on this server: it was answered within its handling, or went with its connection\.",
        _("It is not open on this server: it was answered within its handling, or went with its connection."),
    ),
    (
        r"Its server is not heard, and the message was delivered again\.",
        _("Its server is not heard, and the message was delivered again."),
    ),
    (r"It could not be committed: (?P<problem>.*)", _("It could not be committed: %(problem)s")),
    (
        r"What its handling sent was not taken: (?P<problem>.*)",
        _("What its handling sent was not taken: %(problem)s"),
    ),
    (r"agent on (?P<server>.+)", _("agent on %(server)s")),
)
_PATTERNS = tuple((re.compile(pattern, re.DOTALL), text) for pattern, text in _TEXTS)


def in_words(told: str) -> str:
    for pattern, text in _PATTERNS:
        if match := pattern.fullmatch(told):
            return str(text) % match.groupdict()
    return told
