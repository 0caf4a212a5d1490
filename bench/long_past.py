"""A long history of a running product: a new day counted, a page, and a question over all, at three sizes of it."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.measure import Figure
from bench.pages import Browser
from bench.product import Product
from okmq.instance import Broken, instance
from spark.history import History
from spark.session import SessionSettings, build, end
from streams.log import config
from streams.log.client import Log

MESSAGES = 10_000_000
DAYS = 30
STAGES = (3, 9, 30)
"""After so many days the figures are taken: at a tenth, three tenths and all of the messages."""

FILES_A_DAY = 4
WITHIN_S = 1200.0
PAGES = {
    "history page": "/streams/{stream}/history/",
    "history page, 30 days": "/streams/{stream}/history/?range=30d",
}
ANSWER = "/sql/{query}/"
QUESTION = "SELECT key, count(*) AS messages, avg(bytes) AS size FROM messages GROUP BY key"
INTO_BODIES = (
    "SELECT key, count(*) AS messages, avg(cast(get_json_object(body, '$.delay') AS int)) AS delay "
    "FROM messages GROUP BY key"
)


def long_past(*, messages: int = MESSAGES) -> list[Figure]:
    """Days of the same size, made where the archive would have put them; the last of each stage is counted alone."""
    with tempfile.TemporaryDirectory(prefix="okmq-bench-past-") as name:
        folder = Path(name)
        with _product(folder) as ours, _maker(folder) as session:
            past = _Past(ours, session, a_day=-(-messages // DAYS))
            browser = Browser(ours)
            figures: list[Figure] = []
            days = 0
            for stage in STAGES:
                past.add(days, stage - 1)
                past.count()
                past.add(stage - 1, stage)
                days = stage
                took_s = past.count()
                figures += [
                    Figure(
                        name=f"{days * past.a_day:,} of history: a new day of {past.a_day:,} counted",
                        reached=took_s,
                        unit="s",
                        at_most=15,
                    ),
                    *_looked_at(ours, browser, past, days),
                ]
    return figures


class _Past:
    """The history of one stream of a product."""

    def __init__(self, ours: Product, session: SparkSession, *, a_day: int) -> None:
        self.ours = ours
        self.a_day = a_day
        self.stream, self.stream_id = ours.stream()
        self.history = History(session, str(ours.data_dir / "history"))
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        self._begins = midnight - timedelta(days=DAYS)

    def add(self, first: int, end: int) -> None:
        """Put the days from ``first`` to before ``end`` into the history, each as one batch."""
        for day in range(first, end):
            before = day * self.a_day
            last = before + self.a_day
            self.history.append(
                self._rows(day, before + 1, last),
                query="bench",
                batch_id=day,
                start={self.stream_id: before},
                end={self.stream_id: last},
            )
        with closing(Log(self.ours.keeper_url)) as log:
            log.run(config.archived_set(self.stream_id, end * self.a_day))

    def count(self) -> float:
        """Have the product count what is new; seconds from the beginning of the run to its end."""
        asked = self.ours.ask("POST", "/analytics/runs/", {"job": "rollup"})
        run = _until_it_ends(self.ours, f"/analytics/runs/{asked['id']}", {"queued", "running"})
        if run["state"] != "succeeded":
            raise Broken(f"The rollup run ended as {run['state']}: {run['error']}")
        began, ended = (datetime.fromisoformat(run[name]) for name in ("started_at", "finished_at"))
        return (ended - began).total_seconds()

    def _rows(self, day: int, first: int, last: int) -> DataFrame:
        """Messages of 100 to 200 bytes, evenly over the day, of a thousand keys in turns."""
        began_ms = int((self._begins + timedelta(days=day)).timestamp() * 1000)
        at_ms = f"{began_ms} + cast((id - {first}) * 86400000D / {self.a_day} AS bigint)"
        body = (
            'concat(\'{"n":\', id, \',"delay":\', id * 37 % 600, \',"x":"\', '
            "repeat('x', cast(60 + id * 7919 % 100 AS int)), '\"}')"
        )
        return (
            self.history.session.range(first, last + 1, 1, FILES_A_DAY)
            .selectExpr(
                "1 AS workspace_id",
                f"'{self.stream_id}' AS stream_id",
                f"'{self.stream}' AS stream",
                "id AS offset",
                f"timestamp_millis({at_ms}) AS timestamp",
                "lpad(id, 15, '0') AS id",
                "concat('key.', id % 1000) AS key",
                "cast(NULL AS map<string, string>) AS headers",
                f"{body} AS body",
            )
            .selectExpr("*", "octet_length(body) AS bytes")
            .selectExpr("* EXCEPT (bytes)", "cast(bytes AS bigint) AS bytes")
        )


def _looked_at(ours: Product, browser: Browser, past: _Past, days: int) -> Iterator[Figure]:
    """The page of all these days, and two questions over everything."""
    of = f"{days * past.a_day:,} of history:"
    for what, page in PAGES.items():
        took_ms = browser.answer_ms(page.format(stream=past.stream))
        yield Figure(name=f"{of} {what}", reached=took_ms, unit="ms", at_most=300)
    for what, sql in (("SELECT of all by key", QUESTION), ("the same with a field of the body", INTO_BODIES)):
        began = time.perf_counter()
        answer = ours.ask("POST", "/analytics/query", {"sql": sql, "limit": 1000})
        if "rows" not in answer:
            answer = _until_it_ends(
                ours, f"/analytics/query/{answer['id']}", {"queued", "starting", "running"}
            )
        took = time.perf_counter() - began
        counted = sum(row[1] for row in answer["rows"])
        if counted != days * past.a_day:
            raise RuntimeError(f"{counted} messages were counted where there are {days * past.a_day}.")
        yield Figure(name=f"{of} {what}", reached=took, unit="s", at_most=20)
    took_ms = browser.answer_ms(ANSWER.format(query=ours.ask("GET", "/analytics/query")[0]["id"]))
    yield Figure(name=f"{of} page of the answer", reached=took_ms, unit="ms", at_most=300)


def _until_it_ends(ours: Product, path: str, goes_on: set[str]) -> Any:
    deadline, pause = time.monotonic() + WITHIN_S, Event()
    while time.monotonic() < deadline:
        found = ours.ask("GET", path)
        if found.get("state") not in goes_on:
            return found
        pause.wait(0.1)
    raise Broken(f"{path} did not end within {WITHIN_S:g} seconds.")


@contextmanager
def _product(folder: Path) -> Iterator[Product]:
    with instance(folder, more={"OKMQ_HISTORY": "on", "OKMQ_HISTORY_EVERY": "86400"}) as started:
        yield Product(**asdict(started))


@contextmanager
def _maker(folder: Path) -> Iterator[SparkSession]:
    """A session beside the product's, which only writes what is past."""
    try:
        yield build(SessionSettings(folder=folder / "maker"))
    finally:
        end()
