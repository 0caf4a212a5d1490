"""How far the archive is with its batch, told by what it leaves on the disk."""

from pathlib import Path

STEPS = ("planned", "written", "moved", "counting")
"""Of a batch: its offsets are known, its files are written, they are moved to their places, it counts."""


class UnderWay:
    """What the disk tells of the archive."""

    def __init__(self, data_dir: Path) -> None:
        self._history = data_dir / "history"
        self._checkpoint = data_dir / "spark" / "checkpoints" / "archive"
        self._number = 0

    @property
    def number(self) -> int:
        """Of the last batch that counts."""
        while (self._history / "_log" / f"{self._number + 1:012d}.json").exists():
            self._number += 1
        return self._number

    def reached(self, step: str) -> str:
        """Which batch is at a step or was there last, by a name; empty where there is none."""
        match step:
            case "planned":
                return _newest(self._checkpoint / "offsets")
            case "written":
                return _newest(self._history / "_staging")
            case "moved":
                return _made(self._history / "_log" / "pending.json")
            case _:
                return str(self.number)

    @property
    def under_way(self) -> str:
        """What is done at this moment, as far as can be seen from outside."""
        if self.reached("moved"):
            return "while files are moved"
        if self.reached("written"):
            return "while files are written"
        if _newest(self._checkpoint / "offsets") != _newest(self._checkpoint / "commits"):
            return "with a batch planned, or to be told"
        return "between two batches"


def _newest(folder: Path) -> str:
    try:
        names = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError:
        return ""
    return max(names, key=_by_number, default="")


def _by_number(name: str) -> tuple[int, str]:
    return len(name), name


def _made(path: Path) -> str:
    try:
        return str(path.stat().st_mtime_ns)
    except OSError:
        return ""
