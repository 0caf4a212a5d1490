"""Posting to an address that a person named, without letting it reach what only this machine may reach.

The name is resolved once, every address that it has must be public, and the connection goes to the one that was
checked: a name that answers differently a moment later (DNS rebinding) gains nothing. Redirects are not followed and
no proxy is used. See OWASP, Server Side Request Forgery Prevention Cheat Sheet.
"""

import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
from urllib.parse import urlsplit

TIMEOUT_S = 10.0
LONGEST_URL = 2000


class WebhookRefused(Exception):
    """It was not sent, or not taken; the text is a sentence for people."""


def url_fault(url: str) -> str:
    """What is wrong with an address, in a sentence, or nothing; the name is not looked up."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "This is no address."
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        return "Expected an address such as https://example.org/hook."
    if parts.username is not None or parts.fragment:
        return "An address here has no user and no fragment."
    if len(url) > LONGEST_URL or not url.isascii() or any(character <= " " for character in url):
        return f"Expected at most {LONGEST_URL} characters of ASCII without blanks."
    return ""


def signature(secret: str, *, timestamp: int, body: bytes) -> str:
    """``v1=`` and the HMAC-SHA256 of ``<timestamp>.<body>`` in hexadecimal."""
    digest = hmac.new(secret.encode(), str(timestamp).encode() + b"." + body, hashlib.sha256)
    return f"v1={digest.hexdigest()}"


def checked_address(host: str, port: int, *, allow_private: bool) -> str:
    """The address to connect to.

    Raises:
        WebhookRefused: the name has none, or one that is not public.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise WebhookRefused(f"The name {host} has no address.") from None
    addresses = [str(each[4][0]) for each in found]
    for address in addresses:
        if not allow_private and not is_public(address):
            raise WebhookRefused(f"{host} is {address}, which is not a public address.")
    return addresses[0]


def is_public(address: str) -> bool:
    """Whether everybody's internet has this address; also what an address of IPv6 holds of IPv4 is looked at."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast


def post(url: str, body: bytes, *, secret: str, timestamp: int, delivery: str, allow_private: bool) -> None:
    """Post signed JSON.

    Args:
        timestamp: unix seconds, signed with the body, so that a receiver may refuse what is old.
        delivery: names this message, the same at each try.

    Raises:
        WebhookRefused: the address is refused, cannot be reached, or answers anything but 2xx.
    """
    fault = url_fault(url)
    if fault:
        raise WebhookRefused(fault)
    parts = urlsplit(url)
    host, is_safe = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_safe else 80)
    address = checked_address(host, port, allow_private=allow_private)
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        plain = socket.create_connection((address, port), timeout=TIMEOUT_S)
        connection.sock = (
            ssl.create_default_context().wrap_socket(plain, server_hostname=host) if is_safe else plain
        )
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        default = 443 if is_safe else 80
        name = f"[{host}]" if ":" in host else host
        headers = {
            "Host": name if port == default else f"{name}:{port}",
            "Content-Type": "application/json",
            "User-Agent": "OKMQ",
            "Okmq-Delivery": delivery,
            "Okmq-Timestamp": str(timestamp),
            "Okmq-Signature": signature(secret, timestamp=timestamp, body=body),
        }
        connection.request("POST", path, body, headers)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise WebhookRefused(f"{host} could not be reached: {str(error) or type(error).__name__}.") from None
    finally:
        connection.close()
    if not 200 <= status < 300:
        raise WebhookRefused(f"{host} answered {status}.")
