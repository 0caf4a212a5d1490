"""What a seek has delivered: how much of it again, and how much for the first time."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dashboard import formats
from dashboard.groups.group_rows import PastSeek
from streams import selectors
from streams.models import Group
from streams.models.group import StartFrom

Span = tuple[int, int]
"""Offsets from the first one up to the second, which is not among them."""


@dataclass(frozen=True, slots=True)
class SeekEffect:
    """What a seek back has delivered, or one forward has skipped.

    Attributes:
        goes_back, moves: where to.
        messages: how many are delivered, or skipped; None where nobody counted.
        again: of those that are delivered, how many were before; at most so many where it is not exact.
        spans: where these lie.
    """

    goes_back: bool
    moves: bool
    messages: int | None
    again: int = 0
    is_exact: bool = True
    spans: Sequence[Span] = ()

    @property
    def words(self) -> str:
        """One sentence; ``redelivered`` is only what was delivered before."""
        if not self.moves:
            return _("The position stays where it is.")
        if self.messages is None:
            return self._uncounted()
        count = {"count": formats.count(self.messages)}
        if not self.goes_back:
            return (
                ngettext("%(count)s message is skipped.", "%(count)s messages are skipped.", self.messages)
                % count
            )
        if self.messages and self.again == self.messages and self.is_exact:
            return (
                ngettext(
                    "%(count)s message is redelivered.", "%(count)s messages are redelivered.", self.messages
                )
                % count
            )
        if not self.again:
            return (
                ngettext(
                    "%(count)s message is delivered for the first time.",
                    "%(count)s messages are delivered for the first time.",
                    self.messages,
                )
                % count
            )
        figures = count | {
            "again": formats.count(self.again),
            "fresh": formats.count(self.messages - self.again),
            "where": self._where(),
        }
        if not self.is_exact:
            return (
                _("%(count)s messages are delivered, at most %(again)s of them again (%(where)s).") % figures
            )
        return (
            _("%(count)s messages are delivered: %(again)s again (%(where)s), %(fresh)s for the first time.")
            % figures
        )

    def _uncounted(self) -> str:
        if not self.goes_back:
            return _("Messages before that offset are skipped.")
        if not self.spans:
            return _("Messages from that offset on are delivered for the first time.")
        return _("Messages from that offset on are delivered; those delivered before (%(where)s) again.") % {
            "where": self._where()
        }

    def _where(self) -> str:
        first, below = self.spans[0][0], self.spans[-1][1]
        if len(self.spans) == 1:
            if below - first == 1:
                return _("offset %(first)s") % {"first": formats.count(first)}
            words = _("offsets %(first)s to %(last)s")
        else:
            words = _("between offsets %(first)s and %(last)s")
        return words % {"first": formats.count(first), "last": formats.count(below - 1)}


def covered(went: Sequence[Span], *, low: int, high: int) -> list[Span]:
    """Which offsets between two lie in one of the spans or more: in order, none twice."""
    found: list[Span] = []
    for begin, end in sorted(went):
        first, below = max(begin, low), min(end, high)
        if first < below:
            if found and found[-1][1] == first:
                found[-1] = (found[-1][0], below)
            else:
                found.append((first, below))
            low = below
    return found


def went_through(seeks: Sequence[PastSeek], *, start: int, now: int) -> list[Span]:
    """What a group went through since it was made, the newest stretch last.

    Args:
        seeks: newest first.
        start: where it began; now: the offset that is next.
    """
    begins = [start, *(seek.to for seek in reversed(seeks))]
    ends = [*(seek.back_to for seek in reversed(seeks)), now]
    return list(zip(begins, ends, strict=True))


def effect_of(
    group: Group, seeks: Sequence[PastSeek], *, has_all: bool, before: int, after: int, messages: int | None
) -> SeekEffect:
    """What a seek from one next offset to another does, before it is done.

    Args:
        seeks: earlier ones, newest first; has_all: whether there were no more.
        messages: that it has delivered or skipped; None where they are too many to be counted.
    """
    if after >= before:
        return SeekEffect(goes_back=False, moves=after != before, messages=messages)
    start, is_sure = _start(group)
    first, *later = went_through(seeks, start=start if has_all else 0, now=before)
    spans = covered([first, *later], low=after, high=before)
    # Of what waited for its key when the group was moved it is not known whether it was delivered before that.
    was_waiting = bool(seeks) and (group.ordered_by_key or any(seek.waiting for seek in seeks))
    is_exact = not was_waiting and ((has_all and is_sure) or not covered([first], low=after, high=before))
    deliveries = selectors.group_view(group).state.deliveries
    if not deliveries:
        spans = []
    if messages is None:
        return SeekEffect(goes_back=True, moves=True, messages=None, spans=spans)
    again = min(selectors.passed_in(group, spans, waiting=was_waiting), messages)
    if again > deliveries:  # a filter of before let less through
        again, is_exact = deliveries, False
    return SeekEffect(
        goes_back=True,
        moves=True,
        messages=messages,
        again=again,
        is_exact=is_exact or not again,
        spans=spans,
    )


def _start(group: Group) -> tuple[int, bool]:
    """The offset from which on a group delivered at first, or a lower one, and whether it is that very one."""
    if group.start_from == StartFrom.EARLIEST:
        return 0, True
    if group.start_from == StartFrom.LAST:
        return 0, False
    at = selectors.offset_at(group.stream, group.created_at)
    if group.start_from == StartFrom.OFFSET and group.start_offset is not None:
        return min(group.start_offset, at), group.start_offset <= at
    if group.start_from == StartFrom.TIMESTAMP and group.start_timestamp is not None:
        return min(selectors.offset_at(group.stream, group.start_timestamp), at), False
    return at, False
