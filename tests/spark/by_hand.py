"""What windows of the history come to, told in plain Python from rows of ``tests.spark.past``."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from spark.jobs.figures import LENGTHS, Figures, Window
from spark.jobs.profiles import FieldProfile, Profile
from spark.transforms.figures import TOP_KEYS
from spark.transforms.profiles import MOST_FIELDS
from tests.spark.past import BYTES, ID, KEY, OFFSET, STREAM, TIMESTAMP, Row

NAMES = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
    dict: "object",
    list: "array",
}
"""A value's Python type → what JSON calls it."""

ALL = 10**12


def start_of(at: datetime, step: str) -> datetime:
    seconds = LENGTHS[step].total_seconds()
    return datetime.fromtimestamp(at.timestamp() // seconds * seconds, UTC)


def windows_of(rows: Iterable[Row], *, counted: int = ALL) -> list[Window]:
    """All windows that have a message."""
    named = sorted({(row[STREAM], step, start_of(row[TIMESTAMP], step)) for row in rows for step in LENGTHS})
    return [
        Window(number=n, stream_id=stream_id, step=step, start=start, counted=counted)
        for n, (stream_id, step, start) in enumerate(named)
    ]


def looked_at_by_hand(windows: list[Window], rows: Iterable[Row]) -> list[Figures]:
    of_window: dict[tuple[str, str, datetime], list[Row]] = {}
    for row in rows:
        for step in LENGTHS:
            of_window.setdefault((row[STREAM], step, start_of(row[TIMESTAMP], step)), []).append(row)
    found = []
    for window in windows:
        inside = [
            row
            for row in of_window.get((window.stream_id, window.step, window.start), [])
            if row[OFFSET] <= window.counted
        ]
        sizes = sorted(row[BYTES] for row in inside)
        keys = Counter(row[KEY] for row in inside if row[KEY] is not None)
        top = sorted(keys.items(), key=lambda each: (-each[1], each[0]))[: TOP_KEYS[window.step]]

        def rank(share: float, sizes: list[int] = sizes) -> int | None:
            return sizes[max(0, math.ceil(share * len(sizes)) - 1)] if sizes else None

        found.append(
            Figures(
                number=window.number,
                messages=len(inside),
                first=min((row[OFFSET] for row in inside), default=None),
                last=max((row[OFFSET] for row in inside), default=None),
                ids=len({row[ID] for row in inside}),
                keys=len(keys),
                size_p50=rank(0.5),
                size_p90=rank(0.9),
                size_p99=rank(0.99),
                size_max=rank(1.0),
                top_keys=top,
            )
        )
    return found


def has_a_name_twice(text: str) -> bool:
    names: list[list[str]] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names.append([name for name, _ in pairs])
        return dict(pairs)

    json.loads(text, object_pairs_hook=note)
    return any(len(set(each)) < len(each) for each in names)


def profile_by_hand(number: int, rows: list[str]) -> Profile:
    found: dict[str, Counter[str]] = {}
    objects = unreadable = 0
    for text in rows:
        value = json.loads(text)
        if isinstance(value, dict):
            objects += 1
            if has_a_name_twice(text):
                unreadable += 1
                continue
            for name, held in value.items():
                found.setdefault(name, Counter())[NAMES[type(held)]] += 1
    fields = [
        FieldProfile(name=name, present=types.total(), types=dict(types)) for name, types in found.items()
    ]
    fields.sort(key=lambda each: (-each.present, each.name))
    return Profile(number=number, objects=objects, unreadable=unreadable, fields=fields[:MOST_FIELDS])
