"""A filter's conditions as a chain to walk: after each comes the next one that matters, or what the filter says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from streams.filters.conditions import Either, conditions, each_written

Looked = TypeVar("Looked")
"""What conditions look at."""


@dataclass(frozen=True, slots=True)
class Condition(Generic[Looked]):
    """What must hold, or, negated, must not."""

    holds: Callable[[Looked], bool]
    is_negated: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Branch(Generic[Looked]):
    """A condition, and what comes next where it holds and where it does not: another, or whether the filter passes.

    Conditions that are joined in any way come to one walk without calls in each other, which looks at none more than
    it takes to tell. Alternatives lead to the same branch, so that there are as many of them as conditions.
    """

    holds: Callable[[Looked], bool]
    then: "Branch[Looked] | bool"
    otherwise: "Branch[Looked] | bool"


Parts = Mapping[str, Sequence[Condition[Looked]]]


def first_branch(text: str, read: Callable[[str], Sequence[Condition[Looked]]]) -> Branch[Looked] | bool:
    """The branch that a filter begins with.

    Args:
        read: makes of a condition as it was written one or more that must all hold.

    Raises:
        ValueError: a sentence for the form.
    """
    found = conditions(text)
    parts = {written: read(written) for written in each_written(found)}
    return _every(found, parts, then=True, otherwise=False)


def _every(
    found: Sequence[str | Either],
    parts: Parts[Looked],
    *,
    then: Branch[Looked] | bool,
    otherwise: Branch[Looked] | bool,
) -> Branch[Looked] | bool:
    """Where to begin, to come to ``then`` when all of them hold."""
    for condition in reversed(found):
        if isinstance(condition, Either):
            then = _any(condition, parts, then=then, otherwise=otherwise)
            continue
        for part in reversed(parts[condition]):
            ends = (otherwise, then) if part.is_negated else (then, otherwise)
            then = Branch(part.holds, *ends)
    return then


def _any(
    either: Either,
    parts: Parts[Looked],
    *,
    then: Branch[Looked] | bool,
    otherwise: Branch[Looked] | bool,
) -> Branch[Looked] | bool:
    """Where to begin, to come to ``then`` when one of them holds."""
    for alternative in reversed(either.alternatives):
        otherwise = _every(alternative, parts, then=then, otherwise=otherwise)
    return otherwise
