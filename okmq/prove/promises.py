"""What is promised: each sentence with the test that checks it on every change, and what figure a run has for it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from okmq.prove import rewrites
from okmq.prove.faults import Struck
from okmq.prove.found import OTHERS_WITHIN_S, Proof
from okmq.prove.machine import Taken
from okmq.prove.power import EVERY_SECOND


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One clause: what may be relied on, the test that checks it on every change, and the figure of a run."""

    sentence: str
    test: str
    figure: Callable[[Proof], str] | None = None


def _count(*names: str) -> Callable[[Proof], str]:
    """What was counted; a run of before may not have counted all."""

    def told(proof: Proof) -> str:
        return ", ".join(f"{proof.counts[name]} {name}" for name in names if name in proof.counts)

    return told


def _lost(proof: Proof) -> str:
    if not proof.parts:
        return ""
    weaker = proof.total(lambda found: found.lost_in_window)
    told = f"; {weaker:,} lost that were acknowledged with less than `fsync`" if weaker else ""
    return f"{proof.counts['lost']} lost{told}"


def _kills(struck: Iterable[Struck]) -> list[Struck]:
    return [each for each in struck if each.name.startswith("SIGKILL") and each.recovery_s is not None]


def _recovery(proof: Proof) -> str:
    kills = [each for each in _kills(proof.struck) if each.limit_s is not None]
    if not kills:
        return ""
    slowest = max(kills, key=lambda each: (each.recovery_s or 0.0) / (each.limit_s or 1.0))
    return (
        f"{len(kills)} times; nearest to what it may take: {slowest.name}, {slowest.recovery_s:.1f} s of "
        f"{slowest.limit_s or 0.0:.1f} s at {slowest.messages:,} messages{_taken(slowest.taken)}"
    )


def _taken(taken: Taken) -> str:
    """What the machine took, where it took something."""
    told = (
        f", {taken.slowed:.1f} times as slow for what others took of the processors"
        if taken.slowed >= 1.05
        else ""
    )
    return told + (f", {taken.stalled_s:.1f} s of it without a beat" if taken.stalled_s >= 0.05 else "")


def _cuts(proof: Proof) -> str:
    wrong = sum(bool(cut.faults) for cut in proof.cuts)
    return f"{wrong} of {len(proof.cuts)} cuts left anything else" if proof.cuts else ""


def _noted(word: str) -> Callable[[Proof], str]:
    """What faults whose name has a word in it have noted."""
    return lambda proof: "; ".join(each.note for each in proof.struck if each.note and word in each.name)


def _jumps(proof: Proof) -> str:
    jumps = [each for each in proof.struck if "clock" in each.name]
    again = "; what was stored before was sent again each time" if all(each.note for each in jumps) else ""
    early = f", {proof.counts['over early']} over early" if "over early" in proof.counts else ""
    return f"set {len(jumps)} times under load, by up to two days{again}{early}" if jumps else ""


def _crowd(proof: Proof) -> str:
    crowds = [each for each in proof.struck if "at once" in each.name]
    if not crowds:
        return ""
    slowest = max(crowds, key=lambda each: (each.back - each.began) / each.taken.slowed)
    took_s = slowest.back - slowest.began
    return f"{slowest.name.removesuffix(' come back at once')} in {took_s:.1f} s{_taken(slowest.taken)}"


def _power(proof: Proof) -> str:
    if (part := proof.parts.get("power")) is None or not part.struck:
        return ""
    rewriting = sum(each.name.endswith(rewrites.WHILE) for each in part.struck)
    told = f"{len(part.struck)} times, {rewriting} of them while the file was being rewritten"
    in_window = [each for each in part.struck if EVERY_SECOND in each.name]
    weighed = [(each.weight, each.note) for each in in_window if each.weight is not None]
    of_window = f"; in the worst of {len(weighed)}: {max(weighed)[1]}" if weighed else ""
    return f"{told}: {part.counts['lost']} of `fsync` lost{of_window}"


def _archive(proof: Proof) -> str:
    kills = [each.name for each in proof.struck if "archives" in each.name]
    wrong = sum(sentence.startswith("history, ") for sentence in proof.sentences())
    of_spark = sum("of Spark while" in name and "reader" not in name for name in kills)
    after = f"{of_spark} kills of Spark and {len(kills) - of_spark} of its driver, its readers and the store"
    return f"{wrong} lost, doubled, changed or out of order after {after}" if kills else ""


RUN = "tests/okmq/prove/test_quick.py::test_the_quick_proof_finds_nothing"

PROMISES: tuple[Promise, ...] = (
    Promise(
        sentence="What was acknowledged with `Okmq-Durability: fsync` is there, and comes to every group, whatever is "
        "killed",
        test=RUN,
        figure=_lost,
    ),
    Promise(
        sentence="An id is stored once, however often it is sent within the `dedup_window` of its stream",
        test="tests/okmq/demo/test_demo.py::"
        "test_the_whole_year_survives_kills_of_the_web_process_and_of_the_store",
        figure=_count("doubled"),
    ),
    Promise(
        sentence="One order for everybody: what is published after an acknowledgement stands above it, and time never "
        "runs backwards",
        test=RUN,
        figure=_count("reordered"),
    ),
    Promise(
        sentence="A batch is stored whole or not at all, in neighbouring offsets",
        test=RUN,
        figure=_count("torn batches"),
    ),
    Promise(
        sentence="An offset names one message for ever, with the body, the key and the headers that were sent",
        test=RUN,
        figure=_count("one offset, two contents"),
    ),
    Promise(
        sentence="What was refused (4xx) is never read by anybody",
        test="tests/streams/log/test_append.py::test_a_failed_expectation_stores_nothing",
        figure=_count("refused, yet read"),
    ),
    Promise(
        sentence="A message that was acknowledged does not come to its group again",
        test="tests/streams/groups/test_members.py::test_ten_members_lose_and_double_nothing_whatever_is_killed",
        figure=_count("acknowledged, yet came back"),
    ),
    Promise(
        sentence="A message is out at one member at a time, until its `ack_wait` is over or it is given back; a "
        "process that is killed, or stopped for 4 seconds (10 in a whole proof), brings none back before",
        test=RUN,
        figure=_count("overlapping leases"),
    ),
    Promise(
        sentence="The committed offset moves only when somebody moves it",
        test=RUN,
        figure=_count("commits backwards", "commits by nobody"),
    ),
    Promise(
        sentence="A read leaves nothing out, sees everything that was acknowledged before it was sent, and brings no "
        "more than was asked for; neither does a fetch",
        test=RUN,
        figure=_count("skipped by a read", "more than asked for"),
    ),
    Promise(
        sentence="Nothing is there that nobody sent",
        test=RUN,
        figure=_count("never sent"),
    ),
    Promise(
        sentence="The counts of a stream (messages, bytes, last offset) are those of what can be read",
        test="tests/streams/log/test_model.py::test_no_sequence_of_calls_tells_the_log_from_the_model",
        figure=_count("miscounted"),
    ),
    Promise(
        sentence="The promise in an answer, and `/readyz`, follow what the server does, within 5 seconds of a change",
        test=RUN,
        figure=_noted("appendfsync"),
    ),
    Promise(
        sentence="Every call ends by its deadline, also while the store is stopped; none is answered with 500",
        test=RUN,
        figure=lambda proof: (
            f"{proof.total(lambda found: found.late)} late, "
            f"{proof.total(lambda found: found.surprises)} unexpected answers"
        ),
    ),
    Promise(
        sentence="A bad line to the store (every 20th answer lost, connections reset or half-open, answers late, one "
        "byte at a time) doubles nothing, every call ends by its deadline, and nothing stays open: connections of web "
        "processes and worker and, in ten minutes, their threads and the memory of each grow by no more than 5 %",
        test="tests/okmq/prove/test_quick.py::test_lost_answers_double_nothing_and_every_call_ends",
        figure=_noted("bad line"),
    ),
    Promise(
        sentence="A store that is killed is there again within 5 seconds per million messages that it holds then, a "
        "web process or the worker within 5 seconds, and after a flush of scripts, a cut of all connections or a stop "
        "the next call is served within one second (the pause before a new start, 0.2 to 5 seconds when it dies again "
        "and again, comes on top; what other programs take of the processors, or the host, is measured and added)",
        test=RUN,
        figure=_recovery,
    ),
    Promise(
        sentence="The others go on while a web process or the worker is down (in a whole proof Spark, too): a publish "
        f"is stored at least every {OTHERS_WITHIN_S:g} seconds",
        test=RUN,
        figure=lambda proof: (
            f"at most {max((found.silence_s for found in proof.parts.values()), default=0.0):.1f} s "
            "without a stored publish"
        ),
    ),
    Promise(
        sentence="What an append-only file that is cut off leaves is an exact prefix of every stream, in whole "
        "batches, with counts, indexes and groups that agree, and the next offset is the next",
        test="tests/okmq/prove/test_cuts.py::test_a_cut_leaves_an_exact_prefix",
        figure=_cuts,
    ),
    Promise(
        sentence="What was acknowledged with `Okmq-Durability: fsync` is there after the power went, also while the "
        "file was being rewritten; with `window` what is gone was acknowledged within the last two seconds before it",
        test="tests/okmq/prove/test_quick.py::test_what_was_flushed_is_there_after_the_power_went",
        figure=_power,
    ),
    Promise(
        sentence="A backup that is taken under load and restored elsewhere is an exact prefix of every stream, with "
        "its groups",
        test="tests/okmq/operation/test_backup.py::test_a_backup_under_load_is_an_exact_prefix_elsewhere",
    ),
    Promise(
        sentence="What the version before held is there after an upgrade, and hosts of both work side by side",
        test="tests/okmq/test_upgrade.py::test_hosts_are_upgraded_one_after_the_other_while_the_others_go_on",
    ),
    Promise(
        sentence="Scripts and functions that the server forgot are there again within one request",
        test="tests/streams/log/test_library.py::test_a_flush_is_healed_within_the_call",
    ),
    Promise(
        sentence="A jump of the server's clock brings no delivery back early, forgets no id before its `dedup_window` "
        "and no message before its `ttl` is over, lets time run backwards in no stream, and holds up no delivery",
        test="tests/streams/log/test_clock.py::test_a_jump_brings_nothing_back_early_and_holds_nothing_up",
        figure=_jumps,
    ),
    Promise(
        sentence="A replica that is promoted in the store's place is used within one request; until then `/readyz` is "
        "red, and within 5 seconds every answer tells by `Okmq-Epoch`, and an event, that offsets may name other "
        "messages",
        test="tests/okmq/prove/test_quick.py::test_a_promoted_replica_is_used_at_once_and_everybody_is_told",
        figure=_noted("promoted"),
    ),
    Promise(
        sentence="A full store refuses with a reason; reads, acknowledgements, deletes and purges go on",
        test="tests/okmq/prove/test_quick.py::test_a_full_store_refuses_quickly_and_lets_go_of_what_it_has",
        figure=_noted("maxmemory"),
    ),
    Promise(
        sentence="While the disk is full (what the product keeps in reserve is half used up), every publish is refused "
        "within one second and told why; reads, acknowledgements, deletes and purges go on, and within 5 seconds of "
        "room everything does, by itself",
        test="tests/okmq/prove/test_quick.py::test_a_full_disk_refuses_quickly_with_the_reason_and_heals",
        figure=_noted("fills the disk"),
    ),
    Promise(
        sentence="A disk that takes up to 1.5 s for every flush loses nothing, publishes, reads and groups go on, "
        "every call ends by its deadline, and within 5 seconds of its end it is as before. How long publishes take "
        "meanwhile is measured and nothing is demanded of it: a publish waits for the flushes, and is not refused in "
        "their place",
        test="tests/okmq/prove/test_quick.py::test_a_slow_disk_loses_nothing_and_every_call_ends",
        figure=_noted("every flush"),
    ),
    Promise(
        sentence="A crowd that comes back at once is served within 15 seconds (what other programs take of the "
        "processors is added), and leaves nothing open; polls that are reset, and a page that reads nothing, hold up "
        "nobody else",
        test="tests/okmq/prove/test_quick.py::test_a_crowd_is_served_and_leaves_nothing_open",
        figure=_crowd,
    ),
    Promise(
        sentence="Under half of the load that it can take, memory, open files and the slowest hundredth of the answers "
        "grow by less than 1 % in an hour, with 95 % certainty; while noise hides that, the hour goes on for up to "
        "three, and a run that cannot tell it then, or whose machine left too little for the load, does not count",
        test="tests/okmq/prove/test_steady.py::test_half_of_the_peak_is_borne_without_a_refusal",
        figure=_noted("half of the peak"),
    ),
    Promise(
        sentence="Everything archived is in the history once, in order and as it was sent, and is counted once, "
        "whenever the driver, Spark, its readers or the store are killed",
        test="tests/spark/test_kills.py::test_kills_while_the_archive_copies_lose_and_double_nothing",
        figure=_archive,
    ),
)

NOT_PROMISED = """
## What is not promised

- With `OKMQ_FSYNC=everysec` or `no` an answer says `window`: a kill of the server may lose what was acknowledged in
  about the last second (`no`: half a minute; both longer while the disk stalls), and offsets of what was lost are
  handed out again, with another time. `memory` may lose everything.
- A replica that is promoted may lack what was acknowledged: replication does not wait. Offsets of what it lacks are
  handed out again, in another epoch.
- Delivery to a group is at least once: an acknowledgement whose answer was lost is not known to its sender.
- The clock that is set under load is the store's alone. Where it is set back, messages in a stream with a `ttl` may
  stay by as much longer; those with one of their own do not. On a machine without a worker, who first connects between
  a jump and its being noted, a second or so, takes it for time that has passed.
- The history is on the disk, its files before the entry that counts them and this before the store is told of it, where
  `OKMQ_HISTORY_URL` is a folder of this machine. Elsewhere (S3, HDFS, a share that workers on other machines write
  to) it is as safe as that file system makes a file that was closed. A cut of the power is not simulated for it.
- What was not flushed is gone when the power goes; a disk that says it has flushed and has not, and a file system that
  forgets the name of a file, are not simulated.
"""
