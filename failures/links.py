"""Addresses of pages about failures."""

from console.ui.page import link_to


def fingerprint_url(fingerprint: str) -> str:
    """Puts it in the query: a KMA may send any text as a fingerprint."""
    return link_to("fingerprint", fingerprint, "of")
