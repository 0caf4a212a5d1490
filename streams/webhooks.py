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
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlsplit

TIMEOUT_S = 10.0
LONGEST_URL = 2000
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
NEVER_PUBLIC = (
    ipaddress.IPv6Network("::/96"),  # an address of IPv4 in one of IPv6, deprecated (RFC 4291)
    ipaddress.IPv6Network("::ffff:0:0:0/96"),  # one that is translated (RFC 2765)
    ipaddress.IPv6Network("64:ff9b:1::/48"),  # NAT64 of one's own network (RFC 8215)
    ipaddress.IPv6Network("fec0::/10"),  # site-local, deprecated (RFC 3879)
)
"""What ``ipaddress`` takes as global, and is not."""


class WebhookRefused(Exception):
    """It was not sent, or not taken; the text is a sentence for people."""


def url_fault(url: str) -> str:
    """What is wrong with an address, in a sentence, or nothing; the name is not looked up."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "This is not an address."
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        return "Expected an address such as https://example.org/hook."
    if parts.username is not None or parts.fragment:
        return "The address must not have a user or a fragment."
    if len(url) > LONGEST_URL or not url.isascii() or any(character <= " " for character in url):
        return f"Expected at most {LONGEST_URL} ASCII characters without spaces."
    return ""


def shortened(url: str) -> str:
    """An address for those who may not send to it: what follows the host is often a secret, and is a ``…``.

    No address has that character, so that none of these is ever taken for one.
    """
    if not url:
        return ""
    parts = urlsplit(url)
    has_more = parts.path.strip("/") or parts.query
    return f"{parts.scheme}://{parts.netloc}{'/…' if has_more else parts.path}"


def literal_fault(url: str, *, allow_private: bool) -> str:
    """Why an address that needs no look-up would be refused, in a sentence, or nothing; of a name nothing is known yet.

    That are numbers in every notation that the system takes (``127.1``, ``0x7f.1``), and ``localhost`` (RFC 6761).
    """
    host = urlsplit(url).hostname or ""
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        addresses = ["127.0.0.1"]
    else:
        try:
            addresses = _addresses(host, None, socket.AI_NUMERICHOST)
        except (OSError, UnicodeError):
            return ""
    return "" if allow_private else _private_fault(host, addresses)


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
        addresses = _addresses(host, port)
    except (OSError, UnicodeError):
        raise WebhookRefused(f"The name {host} has no address.") from None
    if not allow_private and (fault := _private_fault(host, addresses)):
        raise WebhookRefused(fault)
    return addresses[0]


def _addresses(host: str, port: int | None, flags: int = 0) -> list[str]:
    return [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)]


def _private_fault(host: str, addresses: Iterable[str]) -> str:
    for address in addresses:
        if not is_public(address):
            same = host == address
            return (
                f"{host} is not a public address." if same else f"{host} is {address}, not a public address."
            )
    return ""


def is_public(address: str) -> bool:
    """Whether everybody's internet has this address; of one that leads to IPv4, the one inside is judged."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if any(ip in network for network in NEVER_PUBLIC):
            return False
    return ip.is_global and not ip.is_multicast


def post(url: str, body: bytes, *, secret: str, timestamp: int, delivery: str, allow_private: bool) -> None:
    """Post signed JSON.

    Args:
        timestamp: unix seconds, signed with the body, so that a receiver may refuse what is old.
        delivery: names this message, the same at each try.

    Raises:
        WebhookRefused: the address is refused, cannot be reached, or answers anything but 2xx within ``TIMEOUT_S``,
            all told: one that answers byte by byte is cut off.
    """
    fault = url_fault(url)
    if fault:
        raise WebhookRefused(fault)
    parts = urlsplit(url)
    host, is_safe = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_safe else 80)
    address = checked_address(host, port, allow_private=allow_private)
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    began = time.monotonic()
    end = threading.Timer(TIMEOUT_S, _cut_off, [connection])
    end.start()
    try:
        connection.sock = socket.create_connection((address, port), timeout=TIMEOUT_S)
        if is_safe:
            # Shaken hands only once it can be cut off, too.
            context = ssl.create_default_context()
            connection.sock = context.wrap_socket(
                connection.sock, server_hostname=host, do_handshake_on_connect=False
            )
            connection.sock.do_handshake()
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
        if time.monotonic() - began >= TIMEOUT_S:
            raise TimeoutError  # headers that are cut off look as if they had ended
    except (OSError, http.client.HTTPException) as error:
        if time.monotonic() - began >= TIMEOUT_S:
            raise WebhookRefused(f"{host} did not answer within {TIMEOUT_S:g} s.") from None
        if isinstance(error, OSError):
            raise WebhookRefused(
                f"{host} could not be reached: {str(error) or type(error).__name__}."
            ) from None
        # Its words are the receiver's, and may be any bytes.
        raise WebhookRefused(f"{host} sent a response that is not HTTP.") from None
    finally:
        end.cancel()
        connection.close()
    if not 200 <= status < 300:
        raise WebhookRefused(f"{host} answered {status}.")


def _cut_off(connection: http.client.HTTPConnection) -> None:
    """End what a connection waits for; it may be over already."""
    held = connection.sock
    if held is not None:
        with suppress(OSError):
            held.shutdown(socket.SHUT_RDWR)
