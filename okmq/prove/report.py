"""The page that a proof writes: the promises, and what the last run found."""

import statistics
from collections.abc import Sequence

from okmq.prove.faults import Struck
from okmq.prove.found import Found, Proof
from okmq.prove.promises import NOT_PROMISED, PROMISES, Promise
from okmq.prove.proving import PARTS

HEAD = """# Guarantees

Written by `make prove` (`manage.py okmq_prove --quick` takes under 8 minutes), which starts a product of its own, puts
publishers, readers and groups on it over HTTP, strikes at it, and holds every single call against these promises. Run
it on your machine: it needs nothing but this folder, and changes nothing but this page and what it is made of
(`guarantees.json`). Each part has a product of its own, and can be run by itself: `make prove ARGS="--only clock"`.
What a machine cannot do, or the time did not reach, is named under *Left out*, and the run ends with 3.

Outcomes of a call: 2xx happened, 4xx did not, anything else is unknown until the same call with the same ids is
answered.
"""


def page(proof: Proof) -> str:
    """The whole page in Markdown."""
    lines = [
        HEAD,
        *_runs(proof),
        "",
        "| promise | last run | checked on every change by |",
        "|---|---|---|",
        *(_row(promise, proof) for promise in PROMISES),
        "",
        "## Faults of the last run",
        "",
        "| fault | times | whole again after (median, longest) |",
        "|---|--:|--:|",
        *_faults(proof.struck),
        *_findings(proof),
        *_list("Left out", _left_out(proof)),
    ]
    return "\n".join(lines) + "\n" + NOT_PROMISED


def counts(proof: Proof) -> str:
    """The counts in a few lines, for a terminal."""
    widest = max(map(len, proof.counts), default=0)
    return "\n".join(f"{name:<{widest}}  {count:>6,}" for name, count in proof.counts.items())


def summary(proof: Proof) -> str:
    """How much it was, in a sentence."""
    outcomes = ", ".join(f"{proof.calls[name]:,} {name}" for name in ("ok", "fail", "info"))
    return (
        f"{proof.calls.total():,} calls ({outcomes}), {proof.total(lambda found: found.in_flight):,} of them in flight "
        f"during {len(proof.struck):,} faults and {proof.total(lambda found: found.struck_in_flight):,} when they "
        f"struck; {proof.total(lambda found: found.messages):,} messages; "
        f"{proof.total(lambda found: found.took_s) / 60:.1f} minutes."
    )


def _runs(proof: Proof) -> list[str]:
    return [
        f"{summary(proof)} {_end(proof)}",
        "",
        "| part | calls | faults | messages | minutes | findings | ended |",
        "|---|--:|--:|--:|--:|--:|---|",
        *(_part(found) for found in proof.parts.values()),
    ]


def _end(proof: Proof) -> str:
    wrong = proof.wrong
    if wrong:
        return f"**{wrong:,} finding{'' if wrong == 1 else 's'}.**"
    return "Nothing was broken, and not all was carried out." if _left_out(proof) else "Everything held."


def all_held(proof: Proof) -> str:
    """The end of a run in which nothing was wrong and nothing was left out that it was to do."""
    others = [name for name in PARTS if name not in proof.parts]
    if not others:
        return "Every promise held."
    return f"Every promise held in what this run has; it has no {', '.join(others)}."


def _left_out(proof: Proof) -> list[str]:
    """What the page does not have, in sentences; also what no run was to do."""
    never = [name for name in PARTS if name not in proof.parts and name not in proof.left_out]
    return [*proof.missing(), *(f"{name}: not run yet" for name in never)]


def _part(found: Found) -> str:
    calls = sum(found.calls.values())
    faults = len(found.struck) + len(found.cuts)
    return (
        f"| {found.told} | {calls:,} | {faults:,} | {found.messages:,} | {found.took_s / 60:.1f} | {found.wrong:,} | "
        f"{found.where} |"
    )


def _findings(proof: Proof) -> list[str]:
    return _list("Findings", proof.sentences())


def _list(title: str, sentences: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", *(f"- {sentence}" for sentence in sentences)] if sentences else []


def _row(promise: Promise, proof: Proof) -> str:
    figure = promise.figure(proof) if promise.figure else ""
    path, _, name = promise.test.partition("::")
    return f"| {promise.sentence} | {figure} | [`{name}`](../{path}) |"


def _faults(struck: Sequence[Struck]) -> list[str]:
    by_name: dict[str, list[float]] = {}
    for each in struck:
        by_name.setdefault(each.name.replace("web-1", "web").replace("web-2", "web"), []).append(
            each.back - each.began
        )
    return [
        f"| {name} | {len(took)} | {statistics.median(took):.1f} s, {max(took):.1f} s |"
        for name, took in by_name.items()
    ]
