"""Bearer tokens: their form, their digest, and what a grant covers. Pure; both planes and the console use it."""

import hashlib
import re
import secrets
from collections.abc import Collection
from functools import lru_cache

SCOPES = ("read", "publish", "consume", "manage", "admin")
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
    """Whether scopes include the needed one; ``admin`` implies the rest."""
    return needed in held or "admin" in held


def streams_cover(patterns: Collection[str], name: str) -> bool:
    """Whether a stream's name lies inside a token's patterns; no patterns is every stream."""
    return not patterns or any(_pattern(pattern).fullmatch(name) for pattern in patterns)


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")))
