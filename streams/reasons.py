"""Why a group has its status: figures that the worker keeps, and the sentence in the language of who reads it."""

import msgspec
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from streams import durations


class TooShort(msgspec.Struct, frozen=True, tag="too short"):
    watched_ms: int

    def words(self) -> str:
        return _("Watched for %(time)s, too short to tell.") % {"time": _time(self.watched_ms)}


class NotSampled(msgspec.Struct, frozen=True, tag="not sampled"):
    """It never was, or too few times for anything to be kept."""

    def words(self) -> str:
        return _("Not enough samples yet to tell.")


class NotSampledRecently(msgspec.Struct, frozen=True, tag="not sampled recently"):
    def words(self) -> str:
        return _("The worker has not sampled this group recently.")


class Resumed(msgspec.Struct, frozen=True, tag="resumed"):
    def words(self) -> str:
        return _("Not sampled since it was resumed.")


class Sought(msgspec.Struct, frozen=True, tag="sought"):
    """A seek ended what was known; ``within_ms`` is how long ago at most, None where it was not sampled since."""

    needed_ms: int
    within_ms: int | None = None

    def words(self) -> str:
        needed = {"needed": _time(self.needed_ms)}
        if self.within_ms is None:
            return _("Seek since the last sample; the status needs %(needed)s of samples after it.") % needed
        return _("Seek less than %(time)s ago; the status needs %(needed)s of samples after it.") % {
            "time": _time(self.within_ms),
            **needed,
        }


class Removed(msgspec.Struct, frozen=True, tag="removed"):
    messages: int
    over_ms: int

    def words(self) -> str:
        return ngettext(
            "%(count)s message removed unacknowledged in the last %(time)s.",
            "%(count)s messages removed unacknowledged in the last %(time)s.",
            self.messages,
        ) % {"count": f"{self.messages:,}", "time": _time(self.over_ms)}


class RemovedSoon(msgspec.Struct, frozen=True, tag="removed soon"):
    left_ms: float

    def words(self) -> str:
        return _("Retention removes the oldest unacknowledged message in %(time)s.") % {
            "time": _time(self.left_ms)
        }


class OnLast(msgspec.Struct, frozen=True, tag="on last"):
    """0 where it is known of one without a count; ``has_more``: there may be more than were counted."""

    messages: int
    has_more: bool

    def words(self) -> str:
        if not self.messages:
            return _("A message is on its last delivery; one more failure makes it a dead letter.")
        count = {"count": f"{self.messages:,}"}
        if self.has_more:
            return (
                _(
                    "At least %(count)s messages are on their last delivery;"
                    " one more failure makes each a dead letter."
                )
                % count
            )
        return (
            ngettext(
                "%(count)s message is on its last delivery; one more failure makes it a dead letter.",
                "%(count)s messages are on their last delivery; one more failure makes each a dead letter.",
                self.messages,
            )
            % count
        )


class Paused(msgspec.Struct, frozen=True, tag="paused"):
    """``lag`` is None where only the pause itself is known."""

    lag: int | None = None

    def words(self) -> str:
        if self.lag is None:
            return _("Paused; acknowledgements still count.")
        return _("Paused; %(waiting)s.") % {"waiting": _waiting(self.lag)}


class Held(msgspec.Struct, frozen=True, tag="held"):
    messages: int
    quiet_ms: int
    lag: int

    def words(self) -> str:
        return ngettext(
            "Consumers hold %(count)s message and have neither fetched nor acknowledged for %(time)s; %(waiting)s.",
            "Consumers hold %(count)s messages and have neither fetched nor acknowledged for %(time)s; %(waiting)s.",
            self.messages,
        ) % {
            "count": f"{self.messages:,}",
            "time": _time(self.quiet_ms),
            "waiting": _waiting(self.lag),
        }


class NoConsumers(msgspec.Struct, frozen=True, tag="no consumers"):
    quiet_ms: int
    waiting: int

    def words(self) -> str:
        return _("No consumers: nobody has fetched for %(time)s; %(waiting)s.") % {
            "time": _time(self.quiet_ms),
            "waiting": _waiting(self.waiting),
        }


class NothingAcknowledged(msgspec.Struct, frozen=True, tag="nothing acknowledged"):
    """``is_ever``: the group has never acknowledged anything."""

    over_ms: int
    in_flight: int
    lag: int
    is_ever: bool = False

    def words(self) -> str:
        figures = {"in_flight": _in_flight(self.in_flight), "waiting": _waiting(self.lag)}
        if self.is_ever:
            return (
                _("Consumers fetch, but nothing was ever acknowledged; %(in_flight)s, %(waiting)s.") % figures
            )
        return _(
            "Consumers fetch, but nothing was acknowledged for %(time)s; %(in_flight)s, %(waiting)s."
        ) % {"time": _time(self.over_ms), **figures}


class OldestStuck(msgspec.Struct, frozen=True, tag="oldest stuck"):
    over_ms: int
    redelivered: int

    def words(self) -> str:
        return ngettext(
            "Others are acknowledged, but the oldest message has not been for %(time)s;"
            " %(count)s message redelivered.",
            "Others are acknowledged, but the oldest message has not been for %(time)s;"
            " %(count)s messages redelivered.",
            self.redelivered,
        ) % {"time": _time(self.over_ms), "count": f"{self.redelivered:,}"}


class Growing(msgspec.Struct, frozen=True, tag="growing"):
    lag: int
    per_second: float

    def words(self) -> str:
        return _("More is published than acknowledged: %(waiting)s, %(rate)s more per second.") % {
            "waiting": _waiting(self.lag),
            "rate": f"{self.per_second:.3g}",
        }


class Falling(msgspec.Struct, frozen=True, tag="falling"):
    lag: int
    eta_ms: float

    def words(self) -> str:
        return ngettext(
            "%(count)s message waiting, ETA %(time)s.", "%(count)s messages waiting, ETA %(time)s.", self.lag
        ) % {"count": f"{self.lag:,}", "time": _time(self.eta_ms)}


class FallingNoLonger(msgspec.Struct, frozen=True, tag="falling no longer"):
    lag: int
    quiet_ms: int

    def words(self) -> str:
        return ngettext(
            "%(count)s message waiting; the lag fell, but nobody has fetched for %(time)s.",
            "%(count)s messages waiting; the lag fell, but nobody has fetched for %(time)s.",
            self.lag,
        ) % {"count": f"{self.lag:,}", "time": _time(self.quiet_ms)}


class AtRest(msgspec.Struct, frozen=True, tag="at rest"):
    def words(self) -> str:
        return _("Nothing is waiting, and nothing is in flight.")


class Steady(msgspec.Struct, frozen=True, tag="steady"):
    lag: int
    in_flight: int
    is_behind: bool

    def words(self) -> str:
        figures = {"waiting": _waiting(self.lag), "in_flight": _in_flight(self.in_flight)}
        if self.is_behind:
            return _("Neither falls behind nor catches up; %(waiting)s, %(in_flight)s.") % figures
        return _("Keeps up; %(waiting)s, %(in_flight)s.") % figures


Found = (
    TooShort
    | NotSampled
    | NotSampledRecently
    | Resumed
    | Sought
    | Removed
    | RemovedSoon
    | OnLast
    | Paused
    | Held
    | NoConsumers
    | NothingAcknowledged
    | OldestStuck
    | Growing
    | Falling
    | FallingNoLonger
    | AtRest
    | Steady
)


class Outlasted(msgspec.Struct, frozen=True, tag="outlasted"):
    """A status is held a while after it was found for the last time; ``now`` is what was found instead."""

    over_ms: int
    now: Found

    def words(self) -> str:
        return _("The status was last found %(time)s ago. Now: %(reason)s") % {
            "time": _time(self.over_ms),
            "reason": self.now.words(),
        }


Reason = Found | Outlasted


def _waiting(count: int) -> str:
    if not count:
        return _("nothing waiting")
    return ngettext("%(count)s message waiting", "%(count)s messages waiting", count) % {
        "count": f"{count:,}"
    }


def _in_flight(count: int) -> str:
    return ngettext("%(count)s message in flight", "%(count)s messages in flight", count) % {
        "count": f"{count:,}"
    }


def _time(ms: float) -> str:
    return durations.written(round(ms / 1000))
