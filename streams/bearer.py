"""Bearer tokens: their form, their digest, and what a grant covers. Pure; both planes and the console use it."""

import hashlib
import secrets
from collections.abc import Collection

SCOPES = ("observe", "read", "publish", "consume", "manage", "erase", "admin")
TOKEN_PREFIX = "okmq_"
SHOWN_PREFIX_LENGTH = 10


def make() -> str:
    """A new secret: 256 random bits behind a prefix that scanners for leaked secrets can know."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """SHA-256 in hexadecimal. A plain digest serves, since the secret has 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def from_header(value: str) -> str | None:
    """The secret in an ``Authorization`` header: ``Bearer <token>`` or the bare token; None when neither."""
    scheme, _, rest = value.strip().partition(" ")
    secret = rest.strip() if scheme.lower() == "bearer" else value.strip()
    return secret if secret and " " not in secret and secret.isascii() else None


def scopes_cover(held: Collection[str], needed: str) -> bool:
    """Whether scopes include the needed one; ``admin`` implies the rest, and who may read messages may count them."""
    return needed in held or "admin" in held or (needed == "observe" and "read" in held)


def streams_cover(patterns: Collection[str], name: str) -> bool:
    """Whether a stream's name lies inside a token's patterns; no patterns is every stream."""
    return not patterns or any(_covers(pattern, name) for pattern in patterns)


def _covers(pattern: str, name: str) -> bool:
    """Whether a name is as a pattern says. Each part is taken where it is found first, so nothing is tried twice."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    at = len(first)
    if not name.startswith(first):
        return False
    for part in middle:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(name) - at >= len(last) and name.endswith(last)
