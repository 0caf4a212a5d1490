"""The sign of a restore that is putting a backup in place: until it is done, the data folder is no whole one."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SIGN = "restoring.json"


def begin(data_dir: Path, *, backup: Path, places: Iterable[Path]) -> None:
    """Say what is about to be put where; nothing is there yet."""
    told = json.dumps({"backup": str(backup), "places": list(map(str, places))})
    (data_dir / SIGN).write_text(told, "utf-8")


def end(data_dir: Path) -> None:
    """It is whole."""
    (data_dir / SIGN).unlink(missing_ok=True)


def cut_off(data_dir: Path) -> list[Path] | None:
    """What a restore that was cut off may have put in place; None where none was."""
    told = _sign(data_dir)
    return None if told is None else [Path(each) for each in told["places"]]


def refusal(data_dir: Path) -> str | None:
    """Why nothing may start on a folder, in a sentence or two; None where it may."""
    told = _sign(data_dir)
    if told is None:
        return None
    there = [each for each in told["places"] if Path(each).exists()]
    return (
        f"A restore of {told['backup']} into {data_dir} was cut off: {', '.join(there) or 'nothing'} of it is there, "
        f"the rest is missing. Run it again, it begins anew: manage.py okmq_restore {told['backup']}."
    )


def _sign(data_dir: Path) -> dict[str, Any] | None:
    try:
        told: dict[str, Any] = json.loads((data_dir / SIGN).read_text("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:  # cut off while it was written: before anything was put in place
        return {"backup": "FOLDER", "places": []}
    return told
