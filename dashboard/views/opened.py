"""Which rows of a list are open, as its address says (``open``, an offset, several times)."""

import re
from collections.abc import Callable, Collection
from typing import TypeVar

from django.http import HttpRequest

from streams.errors import Refusal
from streams.log.errors import MessageNotFound

MOST_OPEN = 100
"""As many as a page of messages has rows."""

OFFSET = re.compile(r"[1-9][0-9]{0,14}")

Row = TypeVar("Row")


def opened_of(
    request: HttpRequest, shown: Collection[int], find: Callable[[int], Row]
) -> tuple[list[int], list[Row], list[int]]:
    """What is open among the rows, apart from them, and what was and is there no more.

    What is no offset, and more than a page opens, is left out.

    Args:
        shown: offsets of the rows.
        find: what stands at another offset; raises where nothing does.
    """
    written = [int(text) for text in request.GET.getlist("open") if OFFSET.fullmatch(text)]
    asked = list(dict.fromkeys(written[:MOST_OPEN]))
    apart, gone = [], []
    for offset in asked:
        if offset not in shown:
            try:
                apart.append(find(offset))
            except (MessageNotFound, Refusal):
                gone.append(offset)
    return [offset for offset in asked if offset in shown], apart, gone
