"""Describes which address a request came from: the connection's own, unless that is a proxy which the
settings name."""

import ipaddress
from collections.abc import Sequence

from django.conf import settings
from django.http import HttpRequest

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_address(request: HttpRequest) -> str:
    """The last address of X-Forwarded-For that is no proxy of ours; whatever stands before it anybody may
    write."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    proxies = settings.MA_TRUSTED_PROXIES
    if not _is_one_of(address, proxies):
        return address
    for each in reversed(str(request.META.get("HTTP_X_FORWARDED_FOR", "")).split(",")):
        if not _is_address(each.strip()):
            return address
        address = each.strip()
        if not _is_one_of(address, proxies):
            return address
    return address


def unknown_proxy(request: HttpRequest) -> str:
    """The address from which a request comes that names another one by X-Forwarded-For, where nobody believes
    it."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    if "HTTP_X_FORWARDED_FOR" not in request.META or not _is_address(address) or is_trusted(address):
        return ""
    return address


def is_trusted(address: str) -> bool:
    return _is_one_of(address, settings.MA_TRUSTED_PROXIES)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_one_of(address: str, networks: Sequence[Network]) -> bool:
    return _is_address(address) and any(ipaddress.ip_address(address) in network for network in networks)
