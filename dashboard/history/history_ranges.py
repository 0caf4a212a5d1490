"""Which part of a history is looked at, in which steps: from the query string, checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from dashboard import quantities
from dashboard.forms import BootstrapMixin
from streams.models.history import Step

MOST_BARS = 1500
STEPS = {"minute": (_("minute"), 60), "hour": (_("hour"), 3600), "day": (_("day"), 86_400)}
WHOLE = {"minute": _("whole minutes"), "hour": _("whole hours"), "day": _("whole days (UTC)")}
# range: label, seconds (None: all of it), step unless another is asked for
RANGES: dict[str, tuple[Any, int | None, str]] = {
    "1h": (_("1 h"), 3600, "minute"),
    "6h": (_("6 h"), 6 * 3600, "minute"),
    "24h": (_("24 h"), 86_400, "hour"),
    "7d": (_("7 d"), 7 * 86_400, "hour"),
    "30d": (_("30 d"), 30 * 86_400, "day"),
    "1y": (_("1 y"), 365 * 86_400, "day"),
    "all": (_("all"), None, "day"),
}
DEFAULT_RANGE, CUSTOM = "24h", "custom"
STEP_OF_CUSTOM = ((6 * 3600, "minute"), (14 * 86_400, "hour"))
"""A range of one's own of up to so many seconds goes by this; a longer one by day."""


class RangeForm(BootstrapMixin, forms.Form):
    """A range of one's own: two moments; without an end until now."""

    since = forms.CharField(
        label=_("From"),
        max_length=60,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": _("2 d ago"), "autocomplete": "off"}),
    )
    until = forms.CharField(
        label=_("Until"),
        max_length=60,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": _("now"), "autocomplete": "off"}),
    )

    def __init__(self, data: QueryDict, *, now: datetime) -> None:
        super().__init__(data, auto_id="id_range_%s")
        self.now = now

    def clean_since(self) -> datetime | None:
        return self._moment("since")

    def clean_until(self) -> datetime | None:
        return self._moment("until")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and since >= (until or self.now):
            self.add_error("since", _("Must be before the end."))
        elif until and not since and not self.errors:
            self.add_error("since", _("Enter the start, too."))
        return cleaned

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """What a valid form asks for; None where it asks for nothing."""
        since = self.cleaned_data.get("since") if self.is_valid() else None
        return (since, min(self.cleaned_data["until"] or self.now, self.now)) if since else None

    def _moment(self, name: str) -> datetime | None:
        text: str = self.cleaned_data[name]
        try:
            return quantities.parse_moment(text, now=self.now) if text else None
        except ValueError as error:
            raise ValidationError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Choice:
    """A range or a step to choose."""

    id: str
    label: Any
    allowed: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """What the query string asks for, checked: the range as it is counted, in whole steps.

    Attributes:
        since: where a step begins; None is the beginning.
        until: the end, where a step ends or now; a step that begins there is not in it.
        compare: whether beside the period of the same length before.
        is_widened: whether a range of one's own began or ended within a step.
        refused: the step that was asked for and would be too many bars, or nothing.
    """

    range: str
    step: str
    since: datetime | None
    until: datetime
    compare: bool = False
    is_widened: bool = False
    refused: str = ""

    @property
    def by(self) -> Any:
        """What a bar is."""
        return STEPS[self.step][0]

    @property
    def refused_by(self) -> Any:
        """What a bar would have been, had it not been too many; nothing where what was asked for was taken."""
        return STEPS[self.refused][0] if self.refused else ""

    @property
    def whole(self) -> Any:
        """What the range is counted in, to be said where it is another than was asked for."""
        return WHOLE[self.step]

    @property
    def before(self) -> tuple[datetime, datetime] | None:
        """The period of the same length, in whole steps, that ends where this one begins."""
        if self.since is None or not self.compare:
            return None
        steps = -((self.since - self.until) // self.length)
        return self.since - steps * self.length, self.since

    @property
    def shift(self) -> timedelta:
        """How much earlier the period before begins."""
        return self.before[1] - self.before[0] if self.before else timedelta()

    @property
    def length(self) -> timedelta:
        return timedelta(seconds=STEPS[self.step][1])

    @property
    def ranges(self) -> list[Choice]:
        return [Choice(id, label) for id, (label, _seconds, _step) in RANGES.items()]

    @property
    def steps(self) -> list[Choice]:
        return [Choice(id, label, self.fits(id)) for id, (label, _seconds) in STEPS.items()]

    def fits(self, step: str) -> bool:
        """Whether the range in these steps is few enough bars; all of it goes by day."""
        if self.since is None:
            return step == "day"
        whole = Step(step).ceil(self.until) - Step(step).floor(self.since)
        return whole.total_seconds() <= MOST_BARS * STEPS[step][1]


def asked_for(
    query: Mapping[str, Any], *, now: datetime, span: tuple[datetime, datetime] | None = None
) -> Asked:
    """The range (``span`` is one of one's own) and step, in whole steps up to now at most; what is unknown or would be
    too many bars is the default.
    """
    compare = quantities.is_on(query.get("compare"))
    since: datetime | None
    if span:
        since, until = span
        seconds = (span[1] - span[0]).total_seconds()
        chosen, by = CUSTOM, next((step for most, step in STEP_OF_CUSTOM if seconds <= most), "day")
    else:
        chosen = query.get("range", DEFAULT_RANGE)
        if chosen not in RANGES:
            chosen = DEFAULT_RANGE
        _label, length_s, by = RANGES[chosen]
        since, until = None if length_s is None else now - timedelta(seconds=length_s), now
    asked = Asked(chosen, by, since, until, compare)
    wanted = query.get("step", by)
    refused = wanted if wanted in STEPS and wanted != by and not asked.fits(wanted) else ""
    step = by if refused or wanted not in STEPS else wanted
    counted = None if since is None else Step(step).floor(since), min(Step(step).ceil(until), now)
    is_widened = span is not None and counted != span
    return Asked(chosen, step, *counted, compare, is_widened, refused)


def steps_of(first: datetime, until: datetime, *, step: str) -> list[int]:
    """The begin of each step of a range (unix seconds), also of one that its end is within; at most the newest bars."""
    seconds = STEPS[step][1]
    last = int(Step(step).floor(until - timedelta.resolution).timestamp())
    return list(range(max(int(first.timestamp()), last - MOST_BARS * seconds), last + 1, seconds))


def is_cut(first: datetime, times: Sequence[int]) -> bool:
    """Whether the bars of a range begin after it does, as they are too many."""
    return times[0] > first.timestamp()
