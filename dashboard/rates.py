"""How fast streams move, from the samples that the worker writes into the system's own stream ``_metrics``.

A second without a sample is a second in which nothing moved: the worker samples what changed.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from dashboard import formats
from dashboard.stream_rows import UNKNOWN, Rates, StreamRow
from streams import selectors
from streams.access import Caller
from streams.models import Stream, Workspace
from streams.selectors import METRICS_STREAM

LIVE_CHART_S = 15 * 60
SPARK_S = 60
# Ticks are a second apart and a little late: up to here the rate is taken to go on, beyond it was nought.
CARRY_S = 3.0
# Hundreds of browsers that come back together ask for the same samples; the next event brings newer ones anyway.
SHARED_S = 0.5
MOST_RECORDS = LIVE_CHART_S + 60


@dataclass(frozen=True, slots=True)
class Moved:
    """One stream in one sample: unix seconds, messages and bytes a second."""

    stream_id: str
    at_s: float
    rate_in: float
    bytes_in: float


@dataclass(frozen=True, slots=True)
class Minute:
    """A minute of a workspace: its label, in the active zone, and its average rates."""

    label: str
    rate_in: float
    bytes_in: float


@dataclass(frozen=True, slots=True)
class Series:
    """A workspace's rates over the last quarter of an hour; times are unix seconds."""

    times: list[float]
    rate_in: list[float]
    bytes_in: list[float]

    @property
    def seed(self) -> dict[str, list[float]]:
        return {"times": self.times, "rate_in": self.rate_in, "bytes_in": self.bytes_in}

    @property
    def by_minute(self) -> list[Minute]:
        """The newest minute first; each second counts once."""
        if not self.times:
            return []
        minutes = []
        last = int(self.times[-1])
        rates = per_second(
            list(zip(self.times, self.rate_in, strict=True)), until_s=last, seconds=LIVE_CHART_S
        )
        sizes = per_second(
            list(zip(self.times, self.bytes_in, strict=True)), until_s=last, seconds=LIVE_CHART_S
        )
        first = last - LIVE_CHART_S + 1
        for start in range(last // 60 * 60, first, -60):
            inside = slice(max(0, start - first), start - first + 60)
            seconds = len(rates[inside])
            label = formats.clock(int(start) * 1000)[11:16]
            minutes.append(Minute(label, sum(rates[inside]) / seconds, sum(sizes[inside]) / seconds))
        return minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """A workspace in figures; the names are those of ``live.OverviewSampled``."""

    at_ms: int
    streams: int
    messages: int
    bytes: int
    rate_in: float
    bytes_in: float
    last_ms: int | None


class _Figures(msgspec.Struct):
    rate_in: float = msgspec.field(name="in", default=0.0)
    bytes_in: float = 0.0


class _Second(msgspec.Struct):
    """One record of the internal stream, as far as the rates are concerned; ``at`` is unix ms."""

    at: int
    streams: dict[str, _Figures]


_decode_second = msgspec.json.Decoder(_Second).decode


def moved(*, since_s: float) -> list[Moved]:
    """What moved since then, oldest first."""
    metrics = Stream.objects.filter(name=METRICS_STREAM, internal=True).first()
    if metrics is None:
        return []
    records = max(1, min(MOST_RECORDS, int(time.time() - since_s) + 10))
    found: list[Moved] = []
    for message in selectors.messages_before(metrics, offset=None, limit=records):
        second = _decode_second(message.body)
        if second.at / 1000 >= since_s:
            found.extend(
                Moved(stream_id, second.at / 1000, figures.rate_in, figures.bytes_in)
                for stream_id, figures in second.streams.items()
            )
    return found


def _sampled_since_s() -> float:
    """Unix seconds since when there are samples at all; before that the rates are not known."""
    created = (
        Stream.objects.filter(name=METRICS_STREAM, internal=True).values_list("created_at", flat=True).first()
    )
    return created.timestamp() if created else 0.0


def per_second(points: Sequence[tuple[float, float]], *, until_s: int, seconds: int) -> list[float]:
    """One value a second up to ``until_s`` (included) from (unix seconds, rate); short gaps carry the last rate on."""
    values = [0.0] * seconds
    first = until_s - seconds + 1
    for index, (at_s, rate) in enumerate(points):
        following = points[index + 1][0] if index + 1 < len(points) else until_s + 1
        begin = int(at_s)
        end = int(following) if following - at_s <= CARRY_S else begin + 1
        for second in range(begin, max(end, begin + 1)):
            if first <= second <= until_s:
                values[second - first] = rate
    return values


def workspace_series(workspace: Workspace, *, now_s: float | None = None) -> Series:
    """The sum over a workspace's streams; silence is drawn as nought."""
    now_s = time.time() if now_s is None else now_s
    since_s = max(now_s - LIVE_CHART_S, _sampled_since_s())
    mine = set(Stream.objects.filter(workspace=workspace).values_list("stream_id", flat=True))
    sums: dict[float, list[float]] = {}
    for each in moved(since_s=since_s):
        if each.stream_id in mine:
            held = sums.setdefault(each.at_s, [0.0, 0.0])
            held[0] += each.rate_in
            held[1] += each.bytes_in
    series = Series([], [], [])

    def add(at_s: float, rate_in: float, bytes_in: float) -> None:
        series.times.append(at_s)
        series.rate_in.append(rate_in)
        series.bytes_in.append(bytes_in)

    add(since_s, 0.0, 0.0)
    for at_s, (rate_in, bytes_in) in sorted(sums.items()):
        if at_s - series.times[-1] > CARRY_S:
            add(series.times[-1] + 1, 0.0, 0.0)
            add(at_s - 1, 0.0, 0.0)
        add(at_s, rate_in, bytes_in)
    if now_s - series.times[-1] > CARRY_S:
        add(series.times[-1] + 1, 0.0, 0.0)
        add(now_s, 0.0, 0.0)
    return series


def rows(streams: Sequence[Stream]) -> list[StreamRow]:
    """Streams as the pages show them, with the rates of the last minute."""
    now = time.time()
    points: dict[str, list[Moved]] = {}
    for each in moved(since_s=now - SPARK_S):
        points.setdefault(each.stream_id, []).append(each)
    return [
        StreamRow(
            view, _rates(points.get(view.stream.stream_id, []), now_s=now) if view.is_reachable else UNKNOWN
        )
        for view in selectors.stream_views(streams)
    ]


def _rates(points: Sequence[Moved], *, now_s: float) -> Rates:
    if not points:
        return Rates()
    last_minute = per_second(
        [(point.at_s, point.rate_in) for point in points], until_s=int(now_s), seconds=SPARK_S
    )
    if now_s - points[-1].at_s > CARRY_S:
        return Rates(last_minute=last_minute)
    return Rates(rate_in=points[-1].rate_in, bytes_in=points[-1].bytes_in, last_minute=last_minute)


def totals(caller: Caller) -> Totals:
    """The sums over the streams that a caller may see, now."""
    overview = selectors.overview(caller)
    mine = set(selectors.streams_of(caller).values_list("stream_id", flat=True))
    moving = [each for each in moving_now() if each.stream_id in mine]
    return Totals(
        at_ms=int(time.time() * 1000),
        streams=overview.streams,
        messages=overview.messages,
        bytes=overview.bytes,
        rate_in=sum(each.rate_in for each in moving),
        bytes_in=sum(each.bytes_in for each in moving),
        last_ms=overview.last_ms,
    )


def moving_now() -> list[Moved]:
    """The newest sample of each stream that was sampled within the last seconds."""
    return list({each.stream_id: each for each in moved(since_s=time.time() - CARRY_S)}.values())


class _Shared:
    """``moving_now`` by stream id, read once for all who ask within half a second."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._read_at_s = float("-inf")
        self._by_stream: dict[str, Moved] = {}

    def by_stream(self) -> dict[str, Moved]:
        with self._reading:
            if time.monotonic() - self._read_at_s > SHARED_S:
                self._by_stream = {each.stream_id: each for each in moving_now()}
                self._read_at_s = time.monotonic()
            return self._by_stream


_shared = _Shared()


def moving_lately() -> dict[str, Moved]:
    """As ``moving_now``, by stream id and up to half a second old: the cost does not follow how many ask."""
    return _shared.by_stream()
