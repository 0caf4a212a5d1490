"""What other limits would take from a full stream: how long the answer takes, and how long everybody else waits."""

import threading
import time

from bench.measure import Figure
from bench.product import Product
from bench.store_load import fill

MESSAGES = 1_000_000
ASKED = 5
ANSWERED_MS = 200


def preview(ours: Product, *, messages: int = MESSAGES) -> list[Figure]:
    """Over HTTP, by age, count, bytes, interest and key; somebody else publishes one message after the other."""
    (full, full_id), (other, _) = ours.streams(2)
    ours.ask("POST", f"/streams/{full}/groups/", {"name": "behind"})
    fill(ours.redis_url, full_id, messages=messages)
    waited_s: list[float] = []
    stop = threading.Event()

    def publish() -> None:
        at = 0
        while not stop.is_set():
            began = time.perf_counter()
            ours.ask("POST", f"/streams/{other}/messages", {"id": str(at), "body": at})
            waited_s.append(time.perf_counter() - began)
            at += 1

    others = threading.Thread(target=publish)
    others.start()
    figures = []
    for name, limits in {
        "age": {"ttl": 1},
        "count": {"max_messages": messages // 2},
        "bytes": {"max_bytes": messages * 25},
        "interest": {"retention": "interest"},
        "a limit a key": {"max_messages_per_key": 1},
    }.items():
        took_s = []
        for _ in range(ASKED):
            began = time.perf_counter()
            ours.ask("POST", f"/streams/{full}/retention/preview", limits)
            took_s.append(time.perf_counter() - began)
        figures.append(
            Figure(
                name=f"preview of {name} over {messages:,} messages, slowest of {ASKED}",
                reached=max(took_s) * 1e3,
                unit="ms",
                at_most=ANSWERED_MS,
            )
        )
    stop.set()
    others.join()
    for stream in (full, other):
        ours.drop(stream)
    return [*figures, Figure(name="slowest publish meanwhile", reached=max(waited_s) * 1e3, unit="ms")]
