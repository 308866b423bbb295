"""What people are told of a KMA whose version of the wire this site does not speak."""

from django.utils.translation import gettext as _

from contract.messages import OLDEST_VERSION, VERSION


def version_problem(server: str, version: int) -> str:
    if version < OLDEST_VERSION:
        text = _(
            "The KMA of %(server)s is too old for this site: it speaks version %(n)s, at least %(least)s is "
            "needed."
        )
    else:
        text = _(
            "The KMA of %(server)s is newer than this site: it speaks version %(n)s, known is up to %(most)s."
        )
    return text % {"server": server, "n": version, "least": OLDEST_VERSION, "most": VERSION}


def version_advice(version: int) -> str:
    if version < OLDEST_VERSION:
        return _("Upgrade that KMA. It goes on with its runs and keeps its records meanwhile.")
    return _("Upgrade this site. That KMA goes on with its runs and keeps its records meanwhile.")
