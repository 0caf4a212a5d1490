"""Where the classes of Spark are kept as Java reads them fastest (class data sharing), and for which Java they were.

``python -m spark.prepare`` makes the file. Java looks by itself whether it is of its own build and of the same
libraries; where it is not, or there is none, Spark starts without it, and takes half as long again (docs/adr/0061).
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark

FILE = Path(sys.prefix, "share", "okmq", "spark-classes.jsa")
"""It belongs to the installed PySpark, and is as much to be trusted as that."""

SILENT = ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
"""Java says nothing of a file that is not for it."""

_OPTIONS_OF_JAVA = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")


@dataclass(frozen=True, slots=True)
class ClassData:
    """The file, and beside it a note of what it was made for and how large it is."""

    file: Path = FILE

    @property
    def options(self) -> list[str]:
        """With what Java is started to read it; nothing where it is not whole, which would end Java at once."""
        if self._bytes is None or self._noted.get("bytes") != self._bytes:
            return []
        return [f"-XX:SharedArchiveFile={self.file}", *SILENT]

    def is_of(self, maker: str) -> bool:
        """Whether it is whole, and made for this Java and this PySpark, as ``installed`` tells them."""
        return bool(self.options) and self._noted.get("maker") == maker

    def take(self, made: Path, maker: str) -> None:
        """Put what was made in its place, as a whole; Java that reads the one before goes on."""
        self._note.unlink(missing_ok=True)
        made.replace(self.file)
        self._note.write_text(json.dumps({"maker": maker, "bytes": self._bytes}, indent=1))

    @property
    def _note(self) -> Path:
        return self.file.with_suffix(".json")

    @property
    def _noted(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._note.read_text())
        except (OSError, ValueError):
            return {}
        return found

    @property
    def _bytes(self) -> int | None:
        try:
            return self.file.stat().st_size
        except OSError:
            return None


def installed(environ: Mapping[str, str] = os.environ) -> str | None:
    """What a file is made for: the Java that PySpark will start, and PySpark itself; None without a Java."""
    home = environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java", path=environ.get("PATH", os.defpath))
    if java is None:
        return None
    without = {name: value for name, value in environ.items() if name not in _OPTIONS_OF_JAVA}
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=20, check=True, env=without
        )
    except (OSError, subprocess.SubprocessError):
        return None
    whose = f"PySpark {pyspark.__version__} in {Path(pyspark.__file__).resolve().parent}"
    return f"{Path(java).resolve()}\n{said.stderr}{whose}"
