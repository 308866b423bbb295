"""Small tags beside a message that change what is to be thought of it."""

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _


def kept_tag(durable: bool) -> SafeString:
    """Of a message that the broker forgets when it restarts; nothing of any other."""
    return SafeString("") if durable else format_html(' <span class="tag">{}</span>', _("non-persistent"))
