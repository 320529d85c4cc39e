"""Which addresses only this machine can reach."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address is of this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_open(redis_url: str) -> bool:
    """Tell whether a server is reached without a password, at an address that others may reach."""
    url = urlsplit(redis_url)
    return (
        url.scheme != "unix" and not url.password and not is_loopback(url.hostname or "localhost")
    )
