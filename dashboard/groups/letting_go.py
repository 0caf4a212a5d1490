"""What a group lets go of for good, as a page shows it before a person moves it or settles what it has in flight."""

import time
from dataclasses import dataclass, replace

from dashboard.confirmations import is_much, is_production
from dashboard.shown import Shown
from streams.log.preview import Preview
from streams.models import Stream


@dataclass(frozen=True, slots=True)
class LettingGo:
    """Messages that are removed, as no group wants them any more.

    Attributes:
        shown: how many, at once and within a minute at most.
        phrase: what has to be typed first; nothing where little goes.
    """

    told: Preview
    shown: Shown
    phrase: str

    def has_grown(self, then: Shown) -> bool:
        """Whether more would go than was shown, so that a person is to be asked again."""
        return not then.at_ms or self.shown.messages > then.most


def letting_go(
    stream: Stream, told: Preview, *, at_most: int, stored: int, arriving: float, then: Shown
) -> LettingGo | None:
    """What is to be agreed to; None where nothing goes.

    Args:
        told: what goes beyond what goes anyway.
        at_most: as many messages it is about: other groups may get done with more of these, and with nothing else.
        stored, arriving: messages that the stream holds, and that may come in a minute.
        then: what was shown before, where it was.
    """
    if told.is_complete and not told.messages:
        return None
    shown = then.again(told.messages, arriving=arriving, at_ms=int(time.time() * 1000))
    shown = replace(shown, most=max(shown.messages, min(shown.most, at_most)))
    is_large = bool(shown.messages) and is_much(shown.most, stored=stored)
    is_asked = is_large or is_production(stream) or not told.is_complete
    return LettingGo(told, shown, stream.name if is_asked else "")
