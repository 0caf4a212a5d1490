"""The verdict on a group, over windows made by hand."""

import json
from collections.abc import Sequence

import msgspec
import pytest

from streams import health, reasons
from streams.health import Health, looked
from streams.verdicts import EVERY_MS, WINDOW, Sample, Verdict, judged

START_MS = 1_000_000_000
BUSY = Sample(
    at_ms=START_MS,
    lag=0,
    pending=10,
    held=10,
    floor=100,
    deliveries=110,
    acked=100,
    redelivered=0,
    dead=0,
    removed=0,
    polls=1,
    fetched_ms=START_MS,
    acked_ms=START_MS,
)


def window(
    count: int = WINDOW, *, lags: Sequence[int] = (), step: int = 100, **fixed: object
) -> list[Sample]:
    """Samples of a group that does ``step`` messages between two looks, with some of its figures held fixed."""
    made = []
    for n in range(count):
        at_ms = START_MS + n * EVERY_MS
        moving = {
            "at_ms": at_ms,
            "floor": BUSY.floor + n * step,
            "acked": BUSY.acked + n * step,
            "deliveries": BUSY.deliveries + n * step,
            "fetched_ms": at_ms,
            "acked_ms": at_ms,
            "lag": lags[n] if lags else 0,
        }
        made.append(msgspec.structs.replace(BUSY, **{**moving, **fixed}))
    return made


def with_last(samples: list[Sample], **changes: object) -> list[Sample]:
    return [*samples[:-1], msgspec.structs.replace(samples[-1], **changes)]


def growing(step: int = 100, **edge: object) -> list[Sample]:
    """Of a stream that gets ``step`` messages of ten bytes between two looks, with its edge at the last one."""
    samples = [
        msgspec.structs.replace(sample, offset=1000 + n * step, appended_bytes=10 * (1000 + n * step))
        for n, sample in enumerate(window())
    ]
    return with_last(samples, **edge)


def unacknowledged(**fixed: object) -> list[Sample]:
    """Of a group that somebody fetches from, with seven messages waiting."""
    return [msgspec.structs.replace(each, **fixed) for each in window(step=0, lag=7)]


@pytest.mark.parametrize(
    ("samples", "status"),
    [
        (window(4), "unknown"),
        (window(5), "ok"),
        (window(lags=[0, 90, 30, 99] * 3 + [10, 95, 99]), "ok"),
        (with_last(window(), removed=1), "losing"),
        (with_last(window(), edge_ms=359_000, ttl_ms=3_600_000), "losing"),
        (with_last(window(), edge_ms=361_000, ttl_ms=3_600_000), "ok"),
        (with_last(window(), edge_ms=3_600_000, ttl_ms=86_400_000), "losing"),
        (with_last(window(), edge_ms=40_000, ttl_ms=60_000), "ok"),
        (with_last(window(), edge_ms=1, ttl_ms=3_600_000, pending=0, held=0), "ok"),
        (growing(room_messages=2999, max_messages=20_000), "losing"),  # of ten a second, in five minutes
        (growing(room_messages=3001, max_messages=20_000), "ok"),
        (growing(room_messages=9_999, max_messages=100_000, step=1), "losing"),  # a tenth of what is kept
        (growing(room_messages=49, max_messages=100), "losing"),  # more than half of it waits
        (growing(room_messages=51, max_messages=100), "ok"),
        (growing(room_messages=0, max_messages=100, step=0), "ok"),  # nothing comes that could push it out
        (growing(room_bytes=29_990, max_bytes=200_000), "losing"),
        (growing(room_bytes=30_010, max_bytes=200_000), "ok"),
        (growing(room_messages=0, max_messages=100, pending=0, held=0), "ok"),
        (with_last(window(), is_last_chance=True), "poisoned"),
        (with_last(window(), is_paused=True), "paused"),
        (window(step=0, lag=7, polls=0, fetched_ms=START_MS, acked_ms=START_MS), "stopped"),
        (window(step=0, lag=7, polls=1, fetched_ms=START_MS, acked_ms=START_MS), "stalled"),
        (window(step=0, lag=7, acked_ms=START_MS), "stalled"),
        (window(step=0, pending=1, held=1, polls=1, fetched_ms=START_MS, acked_ms=START_MS), "ok"),
        (window(step=0, pending=1, held=0, polls=0, fetched_ms=START_MS, acked_ms=START_MS), "stopped"),
        (window(lags=[1000 + n * 50 for n in range(WINDOW)]), "slow"),
        (window(lags=[*range(100, 100 + WINDOW - 3), 120, 120, 120]), "slow"),
        (window(lags=[*range(100, 100 + WINDOW - 4), 120, 120, 120, 120]), "ok"),  # it grew, but not lately
        (window(lags=[3000 - n * 100 for n in range(WINDOW)]), "catching up"),
        (window(lags=[3000 + (n % 2) for n in range(WINDOW)]), "ok"),
    ],
)
def test_the_first_that_holds(samples: list[Sample], status: str) -> None:
    assert judged(samples).status == status


@pytest.mark.parametrize(
    ("counted", "told"),
    [
        ({}, "A message is on its last delivery; one more failure makes it a dead letter."),
        ({"on_last": 1}, "1 message is on its last delivery; one more failure makes it a dead letter."),
        ({"on_last": 7}, "7 messages are on their last delivery; one more failure makes each a dead letter."),
        (
            {"on_last": 100, "is_more_on_last": True},
            "At least 100 messages are on their last delivery; one more failure makes each a dead letter.",
        ),
    ],
)
def test_a_poisoned_group_says_how_many_are_on_their_last_delivery(
    counted: dict[str, int], told: str
) -> None:
    assert judged(with_last(window(), is_last_chance=True, **counted)).reason == told


def test_a_lag_that_has_begun_to_fall_is_not_said_to_keep_up() -> None:
    lags = [n * 200 for n in range(12)] + [2150, 2100, 2050]
    verdict = judged(window(lags=lags))
    assert (verdict.status, verdict.reason.split(";")[0]) == ("ok", "Neither falls behind nor catches up")


def test_messages_delivered_in_vain_are_a_stall() -> None:
    samples = [
        msgspec.structs.replace(sample, redelivered=n)
        for n, sample in enumerate(window(step=0, acked_ms=START_MS, lag=0))
    ]
    assert judged(samples).status == "stalled"


def redelivering(samples: Sequence[Sample]) -> list[Sample]:
    return [msgspec.structs.replace(sample, redelivered=n) for n, sample in enumerate(samples)]


def test_an_oldest_message_that_comes_again_and_again_is_a_stall_though_others_are_acknowledged() -> None:
    assert judged(redelivering(window(floor=0))).status == "stalled"
    assert judged(redelivering(window(floor=0))[1:]).status == "ok"
    assert judged(redelivering(window())).status == "ok"
    assert judged(window(floor=0)).status == "ok"


def test_consumers_that_only_say_that_they_work_stall_what_waits() -> None:
    assert judged(window(step=0, lag=7, held=10, acked_ms=START_MS)).status == "stalled"


def taking(count: int = WINDOW, *, acked_ms: int = 0, **fixed: object) -> list[Sample]:
    """Of a group that is handed all that comes, thirty messages between two looks, and acknowledges none."""
    return [
        msgspec.structs.replace(
            each, deliveries=BUSY.deliveries + 30 * n, pending=10 + 30 * n, held=10 + 30 * n, **fixed
        )
        for n, each in enumerate(window(count, step=0, acked=0, floor=0, acked_ms=acked_ms))
    ]


def test_a_group_that_fetches_all_that_comes_and_acknowledges_none_of_it_is_a_stall() -> None:
    found = judged(taking())
    assert (found.status, found.reason) == (
        "stalled",
        "Consumers fetch, but nothing was ever acknowledged; 430 messages in flight, nothing waiting.",
    )
    long_since = taking(acked_ms=START_MS - 600_000, lag_ms=3_600_000)
    assert judged(long_since).reason == (
        "Consumers fetch, but nothing was acknowledged for 12 min 20 s; 430 messages in flight, nothing waiting."
    )


def test_it_stays_a_stall_once_no_more_may_be_in_flight() -> None:
    """And is not said to be slow in between."""
    held: Health | None = None
    for sample in taking():
        held = looked(held, sample)
    most, statuses = taking()[-1], []
    for n in range(1, 2 * WINDOW + 1):
        at_ms = most.at_ms + n * EVERY_MS
        full = msgspec.structs.replace(most, at_ms=at_ms, fetched_ms=most.at_ms, lag=30 * n, polls=1)
        held = looked(held, full)
        statuses.append((held.verdict.status, held.next_status))
    assert set(statuses[1:]) == {("stalled", None)}


@pytest.mark.parametrize(
    "samples",
    [
        taking(WINDOW - 1),  # for less than the window
        [
            msgspec.structs.replace(BUSY, pending=0, held=0, deliveries=0, acked=0),
            *taking()[1:],
        ],  # it just began
        taking()[:5] + [msgspec.structs.replace(each, acked=1) for each in taking()[5:]],  # one was
        taking()[:10]
        + [msgspec.structs.replace(each, deliveries=500) for each in taking()[10:]],  # long jobs
        [
            msgspec.structs.replace(each, floor=n) for n, each in enumerate(taking())
        ],  # a purge took what was out
    ],
)
def test_nothing_acknowledged_is_no_stall_before_a_whole_window_of_fetches(samples: list[Sample]) -> None:
    assert judged(samples).status == "ok"


def test_what_usually_takes_minutes_is_given_three_times_as_long() -> None:
    for minutes, status in ((6, "ok"), (8, "stalled")):
        acked_ms = taking()[-1].at_ms - minutes * 60_000
        samples = taking(acked_ms=acked_ms, lag_ms=3_600_000)
        assert judged(samples, ack_gap_ms=140_000).status == status, minutes


def test_one_that_usually_rests_long_is_not_stopped_early() -> None:
    quiet = window(step=0, lag=7, polls=0, fetched_ms=START_MS, acked_ms=START_MS)
    assert judged(quiet, fetch_gap_ms=10_000).status == "stopped"
    assert judged(quiet, fetch_gap_ms=600_000, ack_gap_ms=600_000).status == "ok"


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        (
            window(step=0, lag=1, polls=0, pending=0, held=0, fetched_ms=START_MS, acked_ms=START_MS),
            "No consumers: nobody has fetched for 2 min 20 s; 1 message waiting.",
        ),
        (
            window(step=0, lag=7, polls=0, fetched_ms=START_MS, acked_ms=START_MS),
            "Consumers hold 10 messages and have neither fetched nor acknowledged for 2 min 20 s; 7 messages waiting.",
        ),
        (
            unacknowledged(acked_ms=START_MS - 20 * 60_000, lag_ms=30 * 60_000),
            "Consumers fetch, but nothing was acknowledged for 22 min 20 s; 10 messages in flight, 7 messages waiting.",
        ),
        (
            unacknowledged(acked_ms=START_MS - 20 * 60_000, lag_ms=180_000),  # the oldest came later
            "Consumers fetch, but nothing was acknowledged for 3 min; 10 messages in flight, 7 messages waiting.",
        ),
        (
            unacknowledged(acked=0, acked_ms=0, lag_ms=21 * 60_000),
            "Consumers fetch, but nothing was ever acknowledged; 10 messages in flight, 7 messages waiting.",
        ),
        (with_last(window(), removed=1200), "1,200 messages removed unacknowledged in the last 2 min 20 s."),
        (window(pending=0, held=0, dead=20), "Nothing is waiting, and nothing is in flight."),
    ],
)
def test_the_reason_says_the_figures(samples: list[Sample], reason: str) -> None:
    assert judged(samples).reason == reason


@pytest.mark.parametrize(
    ("ms", "told"),
    [(49_600, "50 s"), (113_000, "1 min 53 s"), (120_000, "2 min"), (7_500_000, "2 h 5 min")],
)
def test_a_time_has_the_form_that_the_console_gives_it(ms: int, told: str) -> None:
    assert reasons.NoConsumers(ms, 1).words() == (
        f"No consumers: nobody has fetched for {told}; 1 message waiting."
    )


def test_catching_up_says_when_it_is_done() -> None:
    found = judged(window(lags=[3000 - n * 100 for n in range(WINDOW)]))
    assert found.eta_seconds == pytest.approx(160)
    assert found.reason == "1,600 messages waiting, ETA 2 min 40 s."


@pytest.mark.parametrize(("stood", "is_late"), [(2, False), (4, True)])
def test_what_has_stopped_to_fall_is_not_foretold(stood: int, is_late: bool) -> None:
    samples = window(5 + stood, lags=[5000] * 4 + [4000] * (1 + stood), polls=0)
    fetched_ms = samples[4].fetched_ms
    found = judged(
        [msgspec.structs.replace(each, fetched_ms=min(each.fetched_ms, fetched_ms)) for each in samples]
    )
    assert found.status == "catching up"
    assert (found.eta_seconds is None) is is_late
    assert ("nobody has fetched for 40 s" in found.reason) is is_late


def follow(before: Health | None, *samples: Sample) -> list[str]:
    """The status after each look."""
    shown: list[str] = []
    for sample in samples:
        before = looked(before, sample)
        shown.append(before.verdict.status)
    return shown


def health_of(samples: Sequence[Sample], status: str) -> Health:
    verdict = Verdict(status, "")  # type: ignore[arg-type]
    return Health(samples=list(samples), verdict=verdict, since_ms=START_MS)


def test_a_state_is_entered_after_two_and_left_after_three() -> None:
    well, ill = window(60), [msgspec.structs.replace(each, is_last_chance=True) for each in window(60)]
    held = health_of(well[:WINDOW], "ok")
    assert follow(held, ill[15], ill[16], ill[17]) == ["ok", "poisoned", "poisoned"]
    held = health_of(well[:WINDOW], "poisoned")
    assert follow(held, well[15], well[16], well[17]) == ["poisoned", "poisoned", "ok"]
    assert follow(held, well[15], well[16], ill[17], well[18], well[19]) == ["poisoned"] * 5


def test_what_was_not_found_three_times_in_a_row_is_left_though_what_was_found_is_never_the_same() -> None:
    """Else one that turns between two others would be called what it was long ago."""
    well, ill = window(60), [msgspec.structs.replace(each, is_last_chance=True) for each in window(60)]
    held = health_of(well[:WINDOW], "stalled")
    assert follow(held, ill[15], well[16], ill[17]) == ["stalled", "stalled", "poisoned"]
    assert follow(held, well[15], ill[16], well[17]) == ["stalled", "stalled", "ok"]


def test_a_status_that_is_held_says_since_when_it_was_not_found_and_what_is_so_now() -> None:
    edge = with_last(window(), edge_ms=263_000, ttl_ms=3_600_000)
    near = looked(None, edge[0])
    for sample in edge[1:]:
        near = looked(near, msgspec.structs.replace(sample, edge_ms=263_000, ttl_ms=3_600_000))
    told = "Retention removes the oldest unacknowledged message in 4 min 23 s."
    assert (near.verdict.status, near.verdict.reason) == ("losing", told)
    rest = [msgspec.structs.replace(each, pending=0, held=0) for each in window(WINDOW + 4)[WINDOW:]]
    said = []
    for sample in rest:
        near = looked(near, sample)
        said.append((near.verdict.status, near.verdict.reason))
    now = "Nothing is waiting, and nothing is in flight."
    assert said == [
        ("losing", f"The status was last found 10 s ago. Now: {now}"),
        ("losing", f"The status was last found 20 s ago. Now: {now}"),
        ("ok", now),
        ("ok", now),
    ]
    assert health.read(health.written(near)) == near


def test_a_status_that_is_held_foretells_nothing_and_counts_from_when_it_was_found() -> None:
    falling = window(lags=[3000 - n * 100 for n in range(WINDOW)])
    held = Health(samples=falling, verdict=judged(falling), since_ms=START_MS, found_ms=falling[-1].at_ms)
    assert held.verdict.eta_seconds is not None
    after = [msgspec.structs.replace(each, is_last_chance=n == 0) for n, each in enumerate(window(17)[15:])]
    told = []
    for sample in after:
        held = looked(held, sample)
        told.append((held.verdict.status, held.verdict.eta_seconds, held.verdict.reason.split(". Now: ")[0]))
    assert told == [("catching up", None, f"The status was last found {n} s ago") for n in (10, 20)]
    read = health.read(health.written(held))
    assert read == held
    by_before = msgspec.structs.replace(held, found_ms=None, missed=0)
    assert looked(by_before, window(18)[-1]).verdict.reason.startswith("The status was last found 10 s ago.")


def test_a_pause_and_the_first_verdict_show_at_once() -> None:
    samples = window(7)
    assert follow(None, *samples) == ["unknown"] * 4 + ["ok"] * 3
    paused = msgspec.structs.replace(window(8)[7], is_paused=True)
    assert follow(health_of(samples, "ok"), paused) == ["paused"]


def test_what_an_undo_brought_back_is_lost_no_more_and_shows_at_once() -> None:
    well, taken = window(60), [msgspec.structs.replace(each, removed=40) for each in window(60)]
    held = health_of(well[:WINDOW], "ok")
    assert follow(held, taken[15], taken[16], well[17], well[18]) == ["ok", "losing", "ok", "ok"]
    held = health_of(taken[:WINDOW], "ok")
    lost = [msgspec.structs.replace(each, removed=3) for each in well]
    assert follow(held, well[15], lost[16], lost[17])[-1] == "losing", "what is lost since the undo counts"


def test_after_a_seek_only_what_was_sampled_since_is_judged() -> None:
    before = window(generation=1)
    since = [msgspec.structs.replace(each, generation=2, lag=5000) for each in window(WINDOW + 6)[WINDOW:]]
    held = health_of(before, "slow")
    told = [looked(held, since[0]).verdict.reason, looked(looked(held, since[0]), since[1]).verdict.reason]
    assert told == [
        f"Seek less than {seconds} s ago; the status needs 50 s of samples after it." for seconds in (10, 20)
    ]
    assert follow(held, *since) == ["unknown"] * 4 + ["ok"] * 2
    paused = [msgspec.structs.replace(each, is_paused=True) for each in since]
    assert follow(held, *paused) == ["paused"] * 6
    later = msgspec.structs.replace(window(WINDOW + 1)[-1], generation=1)
    assert looked(health_of(window(), "ok"), later).verdict.status == "ok", "an older version noted none"


@pytest.mark.parametrize("status", ["losing", "slow", "ok"])
def test_a_verdict_from_before_a_seek_is_not_told(status: str) -> None:
    (last,) = window(1, generation=1)
    watched = (Verdict(status, "So it was."), last)  # type: ignore[arg-type]
    now_ms = last.at_ms + 1000
    assert health.told(watched, now_ms=now_ms, generation=1) == watched[0]
    assert health.told(watched, now_ms=now_ms) == watched[0]
    told = health.told(watched, now_ms=now_ms, generation=2)
    said = "Seek since the last sample; the status needs 50 s of samples after it."
    assert (told.status, told.reason) == ("unknown", said)
    assert health.told(watched, now_ms=now_ms, generation=2, is_paused=True).status == "paused"


def test_a_rest_that_nobody_looked_at_counts_as_standing_still() -> None:
    resting = window(pending=0, held=0, step=0)
    later = msgspec.structs.replace(resting[-1], at_ms=resting[-1].at_ms + 3_600_000, lag=5)
    found = looked(health_of(resting, "ok"), later)
    assert len(found.samples) == WINDOW
    assert [sample.lag for sample in found.samples] == [0] * (WINDOW - 1) + [5]
    assert {b.at_ms - a.at_ms for a, b in zip(found.samples, found.samples[1:], strict=False)} == {EVERY_MS}


def test_a_gap_in_which_something_waited_is_not_made_up() -> None:
    working = window(lag=5)
    later = msgspec.structs.replace(working[-1], at_ms=working[-1].at_ms + 600_000)
    assert looked(health_of(working, "ok"), later).verdict.status == "unknown"


def test_it_is_kept_as_it_was() -> None:
    held = looked(health_of(window(), "ok"), window(WINDOW + 1)[-1])
    assert health.read(health.written(held)) == held
    assert health.read(b"[]") is None
    assert health.read(None) is None


def test_hosts_of_the_version_before_find_the_reason_as_text_and_theirs_is_read() -> None:
    found = judged(with_last(window(), removed=2))
    kept = json.loads(health.written(Health(samples=window(2), verdict=found, since_ms=START_MS)))
    assert kept["verdict"]["reason"] == "2 messages removed unacknowledged in the last 2 min 20 s."
    del kept["verdict"]["why"]
    theirs = health.read(json.dumps(kept).encode())
    assert theirs
    assert theirs.verdict.reason == found.reason


def test_a_group_at_rest_is_settled_when_its_window_is() -> None:
    resting = window(20, pending=0, held=0, step=0)
    assert health_of(resting[:WINDOW], "ok").is_settled
    assert not health_of(resting[:3], "ok").is_settled
    assert not health_of(window(), "ok").is_settled


def test_the_brief_of_a_group_is_its_verdict_and_its_newest_sample() -> None:
    kept = health.written(Health(samples=window(3), verdict=Verdict("ok", "Fine."), since_ms=START_MS))
    whole = health.read(kept)
    assert whole is not None
    assert health.read_brief(kept) == (whole.verdict, whole.samples[-1])


@pytest.mark.parametrize(
    "kept", [None, b"{}", b"not json", b'{"samples":[],"verdict":{"status":"ok","reason":""}}']
)
def test_what_cannot_be_read_has_no_brief(kept: bytes | None) -> None:
    assert health.read_brief(kept) is None
