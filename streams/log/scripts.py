"""The Lua scripts: one atomic verb a file under ``lua/``, with named includes from ``lua/lib/``."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LUA = Path(__file__).parent / "lua"
_INCLUDE = re.compile(r"^-- include: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Source:
    """One script, whole: its text with the includes in front, and the SHA-1 that the server knows it by."""

    name: str
    text: str
    sha: str


@cache
def load(name: str) -> Source:
    """The script ``lua/<name>.lua`` with what it includes."""
    body = (LUA / f"{name}.lua").read_text("utf-8")
    included = [
        (LUA / "lib" / f"{part.strip()}.lua").read_text("utf-8")
        for line in _INCLUDE.findall(body)
        for part in line.split(",")
    ]
    text = "\n".join([*included, body])
    return Source(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
