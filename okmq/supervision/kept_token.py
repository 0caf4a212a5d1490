"""The admin token that was made up at the first start, kept beside the data for tools on this machine.

Like the secret key it is readable by the folder's owner only, who could read the whole store anyway. A token that
somebody chose and gave in the environment is not written down.
"""

import os
from pathlib import Path

FILE = "admin_token"


def write(data_dir: Path, token: str) -> None:
    """Keep the token; an older one is replaced."""
    path = data_dir / FILE
    fresh = path.with_name(f"{FILE}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(f"{token}\n", "ascii")
    fresh.replace(path)


def read(data_dir: Path) -> str | None:
    """The token that is kept, or None.

    Raises:
        OSError: there is one, but it cannot be read.
    """
    try:
        return (data_dir / FILE).read_text("ascii").strip()
    except FileNotFoundError:
        return None
