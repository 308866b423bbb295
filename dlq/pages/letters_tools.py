"""What can be done with a whole list of dead letters beside giving them back: files of it, a rule for it, an
import."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.services.rights import may
from console.ui.page import Text, link
from dlq import rights


@dataclass(frozen=True, slots=True)
class Tools:
    """Addresses; empty: not offered. `edit` is of all that the list shows, `edit_chosen` of those that are
    ticked, and so on."""

    files: list[tuple[str, str, Text]]
    edit: str = ""
    edit_chosen: str = ""
    redirect: str = ""
    redirect_chosen: str = ""
    discard: str = ""
    discard_chosen: str = ""
    add: str = ""


def tools_of(user: object, key: str, setting: LaunchSetting | None, query: str, *, dead: bool) -> Tools:
    """`query` is the filter of the list as in an address, `dead`: it is one of dead letters."""
    base = link("export_letters", key) if key else link("export_letters")
    more = f"&{query}" if query else ""
    files: list[tuple[str, str, Text]] = [
        ("CSV", f"{base}?file=csv{more}", _("one row each, for a spreadsheet")),
        ("JSON lines", f"{base}?file=jsonl{more}", _("one object each, without properties")),
        (
            _("JSON lines with properties"),
            f"{base}?file=jsonl&bodies=1{more}",
            _("whole letters with their properties, which can be imported again"),
        ),
    ]
    if setting is None:
        return Tools(files)
    edits = dead and may(user, rights.EDIT, setting)
    moves = f"?match=1{more}" if query else "?all=1"
    redirects = dead and setting.destination_id is not None and may(user, rights.REDIRECT, setting)
    discards = dead and may(user, rights.DISCARD, setting)
    imports = setting.destination_id is not None and may(user, rights.IMPORT, setting)
    return Tools(
        files,
        edit=link("edit_letters", key) + moves if edits else "",
        edit_chosen=link("edit_letters", key) if edits else "",
        redirect=link("redirect", key) + moves if redirects else "",
        redirect_chosen=link("redirect", key) if redirects else "",
        discard=link("discard", key) + moves if discards else "",
        discard_chosen=link("discard", key) if discards else "",
        add=link("import_letters", key) if imports else "",
    )
