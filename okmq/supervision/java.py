"""Finds a Java that Spark can run on: ``JAVA_HOME`` first, then ``PATH``."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

OLDEST = 17
ADVICE = "History needs Java 17 or later: apt-get install openjdk-17-jre-headless, then start OKMQ again."


def home(environ: Mapping[str, str]) -> Path | None:
    """The home folder (what ``JAVA_HOME`` means) of the first Java that is new enough; None without one."""
    for java in _candidates(environ):
        if (version(java) or 0) >= OLDEST:
            return java.resolve().parent.parent
    return None


def version(java: Path) -> int | None:
    """The feature release (8, 17, 21, ...) that this executable reports; None when it does not run."""
    try:
        ended = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', ended.stderr + ended.stdout)
    return int(found[1]) if found and ended.returncode == 0 else None


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    given = environ.get("JAVA_HOME")
    if given and os.access(Path(given, "bin", "java"), os.X_OK):
        yield Path(given, "bin", "java")
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        yield Path(on_path)
