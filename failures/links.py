"""Addresses of pages about failures."""

from urllib.parse import urlencode

from console.ui.page import link


def fingerprint_url(fingerprint: str) -> str:
    """In the query: a KMA may send any text as a fingerprint."""
    return f"{link('fingerprint')}?{urlencode({'of': fingerprint})}"
