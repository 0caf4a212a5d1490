"""What becomes of a group's backlog at another rate, and which rate it needs: arithmetic on what the worker sampled."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.forms import BootstrapMixin
from dashboard.groups.group_rows import GroupRow
from streams.selectors import Member
from streams.verdicts import Sample

MOST_ACKS = 1_000_000


class WhatIfForm(BootstrapMixin, forms.Form):
    """At which rate the group would acknowledge."""

    acks = forms.FloatField(
        label=_("Acks per second"),
        min_value=0,
        max_value=MOST_ACKS,
        widget=forms.NumberInput(attrs={"step": "any", "autocomplete": "off"}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """Where a group gets to as things go now, and at other rates. Rates are messages a second.

    Attributes:
        backlog: messages that are not acknowledged, whether in flight or not delivered yet.
        incoming: rate of those that come to the group, by its filter.
        acks: rate of those that are acknowledged.
        edge_seconds: until a limit of the stream removes the oldest of the backlog; None where none is about to.
        consumers: that are at work.
        asked: another rate of acknowledgements; None where none was asked for.
    """

    backlog: int
    incoming: float
    acks: float
    edge_seconds: float | None
    consumers: int
    asked: float | None = None

    def seconds_at(self, acks: float) -> float | None:
        """Until nothing is left at this rate; None where it is never."""
        if not self.backlog:
            return 0.0
        return self.backlog / (acks - self.incoming) if acks > self.incoming else None

    def consumers_at(self, acks: float) -> int | None:
        """As many as this rate takes where each does as much as those of now; None where none does anything."""
        if not self.consumers or self.acks <= 0:
            return None
        return math.ceil(acks / (self.acks / self.consumers) - 1e-9)

    @property
    def grows_by(self) -> float:
        """Rate by which the backlog grows; below nought it falls."""
        return self.incoming - self.acks

    @property
    def seconds(self) -> float | None:
        return self.seconds_at(self.acks)

    @property
    def consumers_to_keep_up(self) -> int | None:
        return self.consumers_at(self.incoming)

    @property
    def rate_in_time(self) -> float | None:
        """The rate at which nothing is left before a limit removes the oldest; None where no limit is near."""
        if self.edge_seconds is None or self.edge_seconds <= 0:
            return None
        return self.incoming + self.backlog / self.edge_seconds

    @property
    def consumers_in_time(self) -> int | None:
        return None if self.rate_in_time is None else self.consumers_at(self.rate_in_time)

    @property
    def asked_seconds(self) -> float | None:
        return None if self.asked is None else self.seconds_at(self.asked)

    @property
    def asked_consumers(self) -> int | None:
        return None if self.asked is None else self.consumers_at(self.asked)

    @property
    def asked_grows_by(self) -> float | None:
        return None if self.asked is None else self.incoming - self.asked

    @property
    def is_too_late(self) -> bool:
        """Whether a limit removes messages before that, at the rate that was asked for."""
        seconds = self.asked_seconds
        return self.edge_seconds is not None and (seconds is None or seconds > self.edge_seconds)


def outlook_of(shown: GroupRow, members: Sequence[Member], *, asked: float | None = None) -> Outlook | None:
    """Of what the samples of the last minutes tell; None where they are too few, or old."""
    samples = since_the_last_seek(shown.view.watched.samples) if shown.view.watched else []
    acks = shown.ack_rate
    if acks is None or len(samples) < 2:
        return None
    return Outlook(
        backlog=shown.state.lag + shown.state.ack_pending,
        incoming=incoming_of(samples),
        acks=acks,
        edge_seconds=shown.edge_seconds,
        consumers=sum(member.state == "active" for member in members),
        asked=asked,
    )


def since_the_last_seek(samples: Sequence[Sample]) -> Sequence[Sample]:
    """A seek makes a backlog of what was done, or the other way round, and nothing of that came in."""
    return [sample for sample in samples if sample.generation == samples[-1].generation]


def incoming_of(samples: Sequence[Sample]) -> float:
    """Messages a second that came to the group: what is left of them, and what has left it on any way."""
    first, last = samples[0], samples[-1]
    seconds = (last.at_ms - first.at_ms) / 1000
    return max(0.0, (_ever(last) - _ever(first)) / seconds) if seconds > 0 else 0.0


def _ever(sample: Sample) -> int:
    return sample.lag + sample.pending + sample.acked + sample.dead + sample.removed
