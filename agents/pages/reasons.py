"""Reasons that the services keep in rows, in the reader's language. One that is not known here is shown as it is."""

import re

from django.utils.translation import gettext as _

_PATTERNS = (
    re.compile(r"^epoch (?P<n>\d+)$"),
    re.compile(r"^The pool “(?P<pool>[^”]*)” has no server\.$"),
    re.compile(r"^No server of the pool “(?P<pool>[^”]*)” is alive\.$"),
    re.compile(r"^No live server of the pool “(?P<pool>[^”]*)” offers the agent “(?P<agent>[^”]*)”\.$"),
    re.compile(r"^the server is silent$"),
    re.compile(r"^the server left the pool or no longer offers the agent$"),
)


def in_words(reason: str) -> str:
    texts = (
        _("epoch %(n)s"),
        _("The pool “%(pool)s” has no server."),
        _("No server of the pool “%(pool)s” is alive."),
        _("No live server of the pool “%(pool)s” offers the agent “%(agent)s”."),
        _("the server is silent"),
        _("the server left the pool or no longer offers the agent"),
    )
    for pattern, text in zip(_PATTERNS, texts, strict=True):
        if match := pattern.match(reason):
            return text % match.groupdict()
    return reason
