"""Samples, as the worker writes them."""

import json
from collections.abc import Mapping

from streams import store
from streams.log import stats
from streams.log.append import append
from streams.log.entries import NewMessage
from streams.models import Stream


def sampled(metrics: Stream, *, at_s: float, moved: Mapping[Stream, float]) -> None:
    """What the worker writes of one second."""
    states = store.log().run(stats.inspect_many([stream.stream_id for stream in moved]))
    streams = {
        stream.stream_id: {
            "offset": states[stream.stream_id].offset,
            "messages": states[stream.stream_id].messages,
            "bytes": states[stream.stream_id].bytes,
            "lag": states[stream.stream_id].lag,
            "in": rate,
            "bytes_in": 2 * rate,
            "out": 1,
        }
        for stream, rate in moved.items()
    }
    body = json.dumps({"at": int(at_s * 1000), "streams": streams}).encode()
    store.log().run(append(metrics.stream_id, [NewMessage(id=f"{at_s}", body=body)]))
