"""Dead letters of a group, as its pages and the API list them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from streams import store
from streams.log import dead_letters as letters
from streams.log.dead_letters import MAX_DELIVER, DeadLetter
from streams.models import Group

LETTERS_READ = 200
LETTERS_LOOKED_AT = 10_000
"""Dead letters that one search looks at; their bodies come with them, some at a time."""

REASONS_OF, REASONS_BYTES = 2_000, 4 * 1024 * 1024
"""Of so many dead letters the reasons are counted, and of fewer once their bodies come to so much."""
REASONS_AT_FIRST = 20
REASONS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """A reason, as it was given and in words, and how many have it; ``holding`` counts those that contain it, too, as
    a search for it finds them.
    """

    given: str
    words: str
    count: int
    holding: int


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why messages are dead letters.

    Attributes:
        first: the most frequent reasons.
        others: how many more there are.
        looked_at: the dead letters, the newest ones, of which this is; ``is_all`` tells whether there are no others.
    """

    first: Sequence[ReasonCount]
    others: int
    looked_at: int
    is_all: bool


def dead_letters(
    group: Group, *, after: int | None = None, limit: int = 100, reason: str = "", newest_first: bool = False
) -> list[DeadLetter]:
    """A group's dead letters in offset order, or from the highest offset down; of n of them the server takes
    O(log n + limit) steps for a page.

    Args:
        after: an offset that the page comes after, in its order; None for the first page.
        reason: text that theirs holds, whatever its case; a bounded look is taken for them.
    """
    if reason:
        return _letters_because(group, reason, after=after, limit=limit, newest_first=newest_first)[0]
    start = None if after is None else after + (-1 if newest_first else 1)
    page = letters.page(
        group.stream.stream_id, group.name, start=start, limit=limit, newest_first=newest_first
    )
    return store.log().run(page)


def dead_letters_chosen(group: Group, offsets: Sequence[int]) -> list[int]:
    """Which of these offsets hold dead letters."""
    return store.log().run(letters.those_dead(group.stream.stream_id, group.name, offsets))


def dead_letters_matching(group: Group, reason: str) -> tuple[list[int], bool]:
    """Offsets of the dead letters whose reason holds a text, whatever its case, and whether more were not looked at."""
    found, has_more = _letters_because(group, reason, after=None, limit=LETTERS_LOOKED_AT, newest_first=False)
    return [letter.offset for letter in found], has_more


def dead_letter_reasons(group: Group) -> Reasons:
    """The most frequent reasons of a group's newest dead letters: bounded by their number and by their bodies."""
    counts: Counter[str] = Counter()
    size, limit, after = 0, REASONS_AT_FIRST, None
    is_all = False
    while limit > 0:
        page = dead_letters(group, after=after, limit=limit, newest_first=True)
        counts.update(letter.reason for letter in page)
        if is_all := len(page) < limit:
            break
        size += sum(len(letter.body) for letter in page)
        after, looked_at = page[-1].offset, counts.total()
        # As many as have room, where they are as large as those before.
        limit = min(LETTERS_READ, REASONS_OF - looked_at, (REASONS_BYTES - size) * looked_at // max(1, size))
    is_all = is_all or not dead_letters(group, after=after, limit=1, newest_first=True)
    first = [
        ReasonCount(reason, reason_in_words(reason), count, _holding(counts, reason))
        for reason, count in counts.most_common(REASONS_SHOWN)
    ]
    return Reasons(first, len(counts) - len(first), counts.total(), is_all)


def _holding(counts: Counter[str], reason: str) -> int:
    return sum(count for other, count in counts.items() if _holds(other, reason.casefold()))


def _holds(reason: str, wanted: str) -> bool:
    """Whether a reason holds a text (of small letters), as it was given or in words."""
    return wanted in reason.casefold() or wanted in reason_in_words(reason).casefold()


def _letters_because(
    group: Group, reason: str, *, after: int | None, limit: int, newest_first: bool
) -> tuple[list[DeadLetter], bool]:
    found: list[DeadLetter] = []
    wanted = reason.casefold()
    for _slice in range(LETTERS_LOOKED_AT // LETTERS_READ):
        page = dead_letters(group, after=after, limit=LETTERS_READ, newest_first=newest_first)
        found += [letter for letter in page if _holds(letter.reason, wanted)]
        if len(page) < LETTERS_READ:
            return found[:limit], len(found) > limit
        after = page[-1].offset
        if len(found) > limit:
            return found[:limit], True
    return found[:limit], bool(dead_letters(group, after=after, limit=1, newest_first=newest_first))


def reason_in_words(reason: str) -> str:
    """Why a dead letter is one; what a consumer gave with term, as it gave it."""
    return _("max deliveries reached") if reason == MAX_DELIVER else reason
