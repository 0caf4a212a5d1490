"""Dead letters of a group, as its pages and the API list them."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from streams import store
from streams.log import dead_letters as letters
from streams.log.dead_letters import MAX_DELIVER, DeadLetter
from streams.models import Group

LETTERS_READ = 200
LETTERS_LOOKED_AT = 10_000
"""Dead letters that one search looks at; their bodies come with them, some at a time."""


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


def _letters_because(
    group: Group, reason: str, *, after: int | None, limit: int, newest_first: bool
) -> tuple[list[DeadLetter], bool]:
    found: list[DeadLetter] = []
    wanted = reason.casefold()
    for _slice in range(LETTERS_LOOKED_AT // LETTERS_READ):
        page = dead_letters(group, after=after, limit=LETTERS_READ, newest_first=newest_first)
        found += [
            letter
            for letter in page
            if wanted in letter.reason.casefold() or wanted in reason_in_words(letter.reason).casefold()
        ]
        if len(page) < LETTERS_READ:
            return found[:limit], len(found) > limit
        after = page[-1].offset
        if len(found) > limit:
            return found[:limit], True
    return found[:limit], bool(dead_letters(group, after=after, limit=1, newest_first=newest_first))


def reason_in_words(reason: str) -> str:
    """Why a dead letter is one; what a consumer gave with term, as it gave it."""
    return _("max deliveries reached") if reason == MAX_DELIVER else reason
