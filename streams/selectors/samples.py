"""What the worker sampled, for the live charts."""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from streams import store
from streams.log import entries, flow, read
from streams.log.client import Op
from streams.log.entries import Message
from streams.log.flow import Flow
from streams.models import Stream, Workspace
from streams.selectors.baselines import LATELY, rate_lately
from streams.selectors.messages import messages_before, messages_from
from streams.selectors.silences import sampling, silences_between, unsampled_seconds

METRICS_STREAM = "_metrics"
"""The internal stream that the worker appends a sample of all streams to, every second."""

RECORDS_ABOUT = 5
"""The worker makes a record a second, more where thousands of streams move."""

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
    held = _metrics()
    if held is None:
        return [], None
    first = store.log().run(read.offset_at(held.stream_id, since_ms))
    pages: list[list[Sample]] = []
    below: int | None = None
    reached_ms: int | None = None
    began = time.monotonic()
    while page := messages_before(held, offset=below, limit=BACK_AT_ONCE):
        below = page[0].offset
        pages.append(_samples_in((message for message in page if message.offset >= first), stream))
        if below <= first:
            break
        if time.monotonic() - began > seconds:
            reached_ms = page[0].timestamp_ms
            break
    return [sample for page in reversed(pages) for sample in page], reached_ms


def flow_of(workspace: Workspace, *, most: int = flow.MOST) -> list[Flow]:
    """How fast the streams of a workspace moved together in the last quarter of an hour, oldest first."""
    return store.log().run(flow.lately(workspace.pk, most=most))


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
