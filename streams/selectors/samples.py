"""What the worker sampled, for the live charts."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from streams import store
from streams.access import Caller
from streams.log import entries, flow, read
from streams.log.client import Op
from streams.log.entries import Message
from streams.log.flow import Flow
from streams.models import Stream
from streams.selectors.baselines import LATELY, rate_lately
from streams.selectors.messages import messages_before, messages_from
from streams.selectors.silences import sampling, silences_between, unsampled_seconds
from streams.selectors.streams import streams_of

METRICS_STREAM = "_metrics"
"""The internal stream that the worker appends a sample of all streams to, every second."""

RECORDS_ABOUT = 5
"""The worker makes a record a second, more where thousands of streams move."""

FLOW_LOOK_S = 0.25
"""How long samples are added up for a chart."""

BACK_AT_ONCE = 300
"""Records in one round trip of a look back: five minutes of them, some megabytes where hundreds of streams move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How a stream stood at a moment (unix ms), and its rates a second since the sample before.

    Attributes:
        appended: bytes that were ever appended; None in a sample of an earlier version.
    """

    at_ms: int
    offset: int
    messages: int
    bytes: int
    lag: int
    messages_in: float
    bytes_in: float
    messages_out: float = 0.0
    appended: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledStep:
    """How a stream stood at the end of a step that began at a moment (unix ms), and the mean rates in it; None where
    nobody counted in all of it.
    """

    at_ms: int
    offset: int | None = None
    messages: int | None = None
    bytes: int | None = None
    lag: int | None = None
    messages_in: float | None = None
    bytes_in: float | None = None
    messages_out: float | None = None


@dataclass(frozen=True, slots=True)
class SamplesRead:
    """How far the internal stream of samples was read: its internal id, where that began, and where to go on."""

    stream_id: str
    begun: int
    offset: int

    def goes_on(self, before: "SamplesRead | None") -> bool:
        """Whether this follows what was read before, rather than begins anew."""
        return before is not None and (self.stream_id, self.begun) == (before.stream_id, before.begun)


class _SampledStream(msgspec.Struct):
    offset: int
    messages: int
    bytes: int
    lag: int
    messages_in: float = msgspec.field(name="in", default=0.0)
    bytes_in: float = 0.0
    messages_out: float = msgspec.field(name="out", default=0.0)
    appended: int | None = None


class _SampledSecond(msgspec.Struct):
    at: int
    streams: dict[str, msgspec.Raw]


_decode_second = msgspec.json.Decoder(_SampledSecond).decode
_decode_sampled = msgspec.json.Decoder(_SampledStream).decode


def recent_samples(stream: Stream, since_ms: int) -> list[Sample]:
    """The worker's samples of a stream since a moment (unix ms), oldest first, from the internal stream of samples.

    A second in which the stream did not change may have no sample.
    """
    held = _metrics()
    if held is None:
        return []
    samples: list[Sample] = []
    offset = store.log().run(read.offset_at(held.stream_id, since_ms))
    while page := messages_from(held, offset=offset, limit=read.PAGE):
        offset = page[-1].offset + 1
        samples += _samples_in(page, stream)
    return samples


def newest_samples(stream: Stream, *, since_ms: int, seconds: float) -> tuple[list[Sample], int | None]:
    """As ``recent_samples``, read from the newest back, for so many seconds at most.

    Where thousands of streams move, an hour of samples is gigabytes, and nobody waits for that before a chart.

    Returns:
        The samples, oldest first, and from when on (unix ms) they are complete where that is later than was asked for.
    """
    pages: list[list[Sample]] = []
    cut_ms: int | None = None
    for page, complete_from_ms in _back(since_ms=since_ms, seconds=seconds):
        pages.append(_samples_in(page, stream))
        cut_ms = complete_from_ms
    return [sample for each in reversed(pages) for sample in each], cut_ms


def flow_of(caller: Caller, *, most: int = flow.MOST) -> tuple[list[Flow], int | None]:
    """How fast the streams that a caller may see moved together in the last quarter of an hour, oldest first.

    The worker adds up whole workspaces. What a narrowed caller sees is added up from the samples, from the newest back
    and for ``FLOW_LOOK_S`` at most.

    Args:
        most: seconds.

    Returns:
        The flow, and from when on (unix ms) it is complete where that is later than was asked for.
    """
    if not caller.streams:
        return store.log().run(flow.lately(caller.workspace.pk, most=most)), None
    stream_ids = set(streams_of(caller).order_by().values_list("stream_id", flat=True))
    sums: dict[int, list[float]] = {}
    cut_ms: int | None = None
    since_ms = int(time.time() * 1000) - most * 1000
    for page, complete_from_ms in _back(since_ms=since_ms, seconds=FLOW_LOOK_S):
        cut_ms = complete_from_ms
        for second in (_decode_second(message.body) for message in page):
            for each in (_decode_sampled(second.streams[one]) for one in stream_ids & second.streams.keys()):
                held = sums.setdefault(second.at, [0.0, 0.0, 0.0])
                held[0] += each.messages_in
                held[1] += each.bytes_in
                held[2] += each.messages_out
    return [Flow(at_ms, *(round(each, 3) for each in sums[at_ms])) for at_ms in sorted(sums)], cut_ms


def _back(*, since_ms: int, seconds: float) -> Iterator[tuple[list[Message], int | None]]:
    """The records of samples since a moment (unix ms) in pages, the newest page first, for so many seconds at most.

    With each page comes None, or with the last one from when on (unix ms) they are complete, where that is later.
    """
    held = _metrics()
    if held is None:
        return
    first = store.log().run(read.offset_at(held.stream_id, since_ms))
    below: int | None = None
    began = time.monotonic()
    while page := messages_before(held, offset=below, limit=BACK_AT_ONCE):
        below = page[0].offset
        inside = [message for message in page if message.offset >= first]
        is_cut = below > first and time.monotonic() - began > seconds
        yield inside, page[0].timestamp_ms if is_cut else None
        if below <= first or is_cut:
            return


def samples_read_on(place: SamplesRead | None, *, since_ms: int) -> tuple[list[Message], SamplesRead | None]:
    """The records of samples from a place on, and where to go on; None while there are none at all.

    Without a place, or where the stream is not what was read any more, those since a moment (unix ms).
    """
    held = _metrics()
    if held is None:
        return [], None
    known = place if place is not None and place.stream_id == held.stream_id else None

    def op() -> Op[tuple[list[entries.Entry], SamplesRead]]:
        at = yield from read.position(held.stream_id)
        if known is not None and known.offset <= at.last + 1:
            begun, offset = known.begun, known.offset
        else:
            begun = offset = yield from read.offset_at(held.stream_id, since_ms)
        found: list[entries.Entry] = []
        while page := (yield from read.forward(held.stream_id, at, offset, read.PAGE)):
            found += page
            offset = entries.position(page[-1])[0] + 1
        return found, SamplesRead(held.stream_id, begun, offset)

    found, following = store.log().run(op())
    return [entries.parse(entry) for entry in found], following


def sample_about(stream: Stream, moments_ms: Sequence[int]) -> Sample | None:
    """The first sample within a few records after the first of these moments (unix ms) that has one."""
    held = _metrics()
    if held is None:
        return None
    for at_ms in moments_ms:
        offset = store.log().run(read.offset_at(held.stream_id, at_ms))
        found = _samples_in(messages_from(held, offset=offset, limit=RECORDS_ABOUT), stream)
        if found:
            return found[0]
    return None


def _metrics() -> Stream | None:
    return Stream.objects.filter(name=METRICS_STREAM, internal=True).first()


def _samples_in(page: Iterable[Message], stream: Stream) -> list[Sample]:
    samples, wanted = [], stream.stream_id.encode()
    for message in page:
        if wanted in message.body:
            second = _decode_second(message.body)
            found = second.streams.get(stream.stream_id)
            if found is not None:
                samples.append(Sample(at_ms=second.at, **msgspec.structs.asdict(_decode_sampled(found))))
    return samples


def metrics_points(
    stream: Stream, *, since_ms: int, now_ms: int, step_s: int
) -> tuple[list[SampledStep], float | None]:
    """One step after another, from the first sample that is known until now.

    A step in which nothing moved has no sample of its own: the stream stood as before, at rest. Where nobody samples
    any more, the last step is that of the last samples.

    Returns:
        The steps, and what ``rate_lately`` says of the last quarter of an hour (``since_ms`` is no later).
    """
    samples = recent_samples(stream, since_ms)
    silent = silences_between(since_ms=since_ms, until_ms=now_ms)
    until_ms = min(now_ms, sampling().known_until_ms)
    unsampled = unsampled_seconds(silent, since_ms=since_ms, until_ms=now_ms)
    rate = lately_in(samples, since_ms=since_ms, now_ms=now_ms, unsampled=unsampled)
    return by_step(samples, now_ms=until_ms, step_s=step_s, unsampled=unsampled), rate


def lately_in(
    samples: Iterable[Sample], *, since_ms: int, now_ms: int, unsampled: Collection[int]
) -> float | None:
    """What ``rate_lately`` says, of samples that are all since a moment; None where that is within the last quarter of
    an hour. ``unsampled`` are seconds in which nobody counted.
    """
    lately_ms = now_ms - int(LATELY.total_seconds() * 1000)
    if since_ms > lately_ms:
        return None
    came = sum(sample.messages_in for sample in samples if sample.at_ms > lately_ms)
    return rate_lately(came, unsampled_s=sum(second > lately_ms / 1000 for second in unsampled))


def by_step(
    samples: Iterable[Sample], *, now_ms: int, step_s: int, unsampled: Collection[int]
) -> list[SampledStep]:
    """Samples, oldest first, as ``metrics_points`` has them; ``unsampled`` are seconds in which nobody counted."""
    step_ms = step_s * 1000
    steps: dict[int, list[Sample]] = {}
    for sample in samples:
        steps.setdefault(sample.at_ms // step_ms, []).append(sample)
    silent_s = Counter(second // step_s for second in unsampled)
    points: list[SampledStep] = []
    last: Sample | None = None
    for number in range(min(steps, default=0), now_ms // step_ms + 1) if steps else ():
        inside = steps.get(number, [])
        last = inside[-1] if inside else last
        counted_s = step_s - silent_s[number]
        if last is None or (not inside and counted_s <= 0):
            points.append(SampledStep(at_ms=number * step_ms))
            continue
        seconds = max(1, counted_s)
        points.append(
            SampledStep(
                at_ms=number * step_ms,
                offset=last.offset,
                messages=last.messages,
                bytes=last.bytes,
                lag=last.lag,
                messages_in=round(sum(sample.messages_in for sample in inside) / seconds, 3),
                bytes_in=round(sum(sample.bytes_in for sample in inside) / seconds, 3),
                messages_out=round(sum(sample.messages_out for sample in inside) / seconds, 3),
            )
        )
    return points
