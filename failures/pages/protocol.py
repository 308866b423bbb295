"""One protocol whole: the summary first, then the place, the message and the run."""

from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from console.ui.page import link, needs, page
from contract.names import BROKERS_OWN
from contract.records import REFUSED, derived_id
from failures.fingerprints.parts import known_in
from failures.intake.conflicts import conflicts_of
from failures.links import fingerprint_url
from failures.models import FailureProtocol
from failures.pages.protocol_table import case_url, skew_of
from failures.pages.protocols import VIEW, protocols_url
from failures.pages.traceback import sections

SHOWN_TRACEBACK = 64 * 1024
MOST_CONFLICTS = 20


@require_safe
@needs(VIEW)
def protocol_page(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    protocol = get_object_or_404(
        FailureProtocol.objects.select_related("setting", "activation", "server"), pk=pk
    )
    kind = (protocol.fingerprint, protocol.setting_key)
    same = FailureProtocol.objects.filter(message_key=protocol.message_key, setting_key=protocol.setting_key)
    return page(
        request,
        "failures/protocol.html",
        title=protocol.exception_type[:80],
        section="protocols",
        crumbs=[(_("Protocols"), link("protocols"))],
        protocol=protocol,
        sections=sections(protocol.traceback[:SHOWN_TRACEBACK]),
        properties=sorted(
            (name, value) for name, value in (protocol.properties or {}).items() if name not in BROKERS_OWN
        ),
        refusal=FailureProtocol.objects.filter(pk=derived_id(pk, REFUSED)).first()
        if protocol.disposition
        else None,
        skew=skew_of(protocol),
        conflicts=list(conflicts_of(protocol, MOST_CONFLICTS)),
        case_url=case_url(protocol) if protocol.message_key else "",
        alike_url=protocols_url(fingerprint=protocol.fingerprint),
        kind_url=fingerprint_url(protocol.fingerprint),
        known=known_in([kind]).get(kind),
        earlier=same.filter(occurred_at__lt=protocol.occurred_at).order_by("-occurred_at").first()
        if protocol.message_key
        else None,
        later=same.filter(occurred_at__gt=protocol.occurred_at).order_by("occurred_at").first()
        if protocol.message_key
        else None,
    )
