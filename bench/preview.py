"""What other limits would take from a full stream: how long the answer takes, and how long everybody else waits."""

import threading
import time
from typing import Any

from bench.measure import BODY, Figure, p99_ms
from bench.product import Product
from streams.log.append import append
from streams.log.client import Log
from streams.log.entries import NewMessage

MESSAGES = 1_000_000
KEYS = 5_000
ASKED = 5
ANSWERED_MS = 200
LONGER_MS = 10
BEFORE_S = 5.0
COMPLETE_WITHIN_S = 600.0


def preview(ours: Product, *, messages: int = MESSAGES) -> list[Figure]:
    """Over HTTP, by age, count, bytes, interest and key; somebody else publishes one message after the other."""
    (full, full_id), (other, _) = ours.streams(2)
    ours.ask("POST", f"/streams/{full}/groups/", {"name": "behind"})
    _fill(ours.keeper_url, full_id, messages=messages)
    waited_s: list[float] = []
    stop, pause = threading.Event(), threading.Event()

    def publish() -> None:
        at = 0
        while not stop.is_set():
            began = time.perf_counter()
            ours.ask("POST", f"/streams/{other}/messages", {"id": str(at), "body": at})
            waited_s.append(time.perf_counter() - began)
            at += 1

    others = threading.Thread(target=publish)
    others.start()
    pause.wait(BEFORE_S)
    before_s = [*waited_s]
    waited_s.clear()
    figures = []
    asked: dict[str, dict[str, Any]] = {
        "age": {"ttl": 1},
        "count": {"max_messages": messages // 2},
        "bytes": {"max_bytes": messages * 25},
        "interest": {"retention": "interest"},
    }
    for name, limits in asked.items():
        took_s = [_asked(ours, full, limits)[0] for _ in range(ASKED)]
        figures.append(_answered(f"preview of {name} over {messages:,} messages", took_s))
    began, first_s = time.perf_counter(), []
    while True:
        elapsed_s, told = _asked(ours, full, {"max_messages_per_key": 1})
        first_s.append(elapsed_s)
        if told["complete"] or time.perf_counter() - began > COMPLETE_WITHIN_S:
            break
        pause.wait(1.0)
    completed_s = time.perf_counter() - began
    took_s = []
    for most in range(1, ASKED + 1):
        elapsed_s, told = _asked(ours, full, {"max_messages_per_key": most})
        assert told["complete"]
        assert told["messages"] == messages - most * KEYS
        took_s.append(elapsed_s)
    began, half = time.perf_counter(), {"name": "half", "filter_keys": ["sensor.*.even"]}
    ours.ask("POST", f"/streams/{full}/groups/", half, within_s=COMPLETE_WITHIN_S)
    made_s = time.perf_counter() - began
    filtered_s: list[float] = []
    while not _asked(ours, full, {"retention": "interest"})[1]["complete"]:
        pause.wait(1.0)
    for _ in range(ASKED):
        elapsed_s, told = _asked(ours, full, {"retention": "interest", "max_messages": messages // 2})
        assert told["complete"]
        assert {each["group"]: each["unread"] for each in told["groups"]} == {
            "behind": messages // 2,
            "half": messages // 4,
        }
        filtered_s.append(elapsed_s)
    stop.set()
    others.join()
    for stream in (full, other):
        ours.drop(stream)
    return [
        *figures,
        _answered("preview of a limit a key from the first question on", first_s),
        Figure(name="until it is complete, after they came", reached=completed_s, unit="s"),
        _answered(f"preview of a limit a key over {messages:,} messages", took_s),
        Figure(name="until a group with a filter is made, which is counted for", reached=made_s, unit="s"),
        _answered(f"preview of interest, a group with a filter, over {messages:,} messages", filtered_s),
        Figure(name="slowest publish meanwhile", reached=max(waited_s) * 1e3, unit="ms"),
        Figure(name=f"slowest publish in the {BEFORE_S:g} s before", reached=max(before_s) * 1e3, unit="ms"),
        Figure(
            name="a publish meanwhile, p99",
            reached=p99_ms(waited_s),
            unit="ms",
            at_most=p99_ms(before_s) + LONGER_MS,
        ),
        Figure(name=f"a publish in the {BEFORE_S:g} s before, p99", reached=p99_ms(before_s), unit="ms"),
    ]


def _answered(name: str, took_s: list[float]) -> Figure:
    return Figure(
        name=f"{name}, slowest of {len(took_s)}",
        reached=max(took_s) * 1e3,
        unit="ms",
        at_most=ANSWERED_MS,
    )


def _asked(ours: Product, stream: str, limits: dict[str, Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    told = ours.ask("POST", f"/streams/{stream}/retention/preview", limits)
    return time.perf_counter() - began, told


def _fill(url: str, stream_id: str, *, messages: int) -> None:
    log = Log(url)
    for first in range(0, messages, 1000):
        batch = [
            NewMessage(id=f"{n:015d}", body=BODY, key=f"sensor.{n % KEYS}.{'odd' if n % 2 else 'even'}")
            for n in range(first, first + 1000)
        ]
        log.run(append(stream_id, batch))
    log.close()
