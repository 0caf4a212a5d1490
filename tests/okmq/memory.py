"""How much memory a process takes."""

import re
from pathlib import Path


def megabytes(pid: int) -> float:
    """The resident memory of a process in MiB, what it shares with others counted in full."""
    found = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found, pid
    return int(found[1]) / 1024
