"""What the history brings a group that is sent to a place older than its stream."""

from django import forms

from dashboard import quantities
from streams import selectors
from streams.models import Group
from streams.models.group import StartFrom


class SeekHistoryForm(forms.Form):
    """Whether the history is to bring what lies behind the place that a preview was about, and which place that is."""

    history = forms.BooleanField(required=False)
    gone_from = forms.IntegerField(required=False, min_value=1, max_value=quantities.LARGEST)
    gone_since = forms.DateTimeField(required=False)

    def gone(self, group: Group) -> selectors.Gone | None:
        """What the history is to bring; None where that is nothing, or nobody wants it."""
        sent = self.cleaned_data if self.is_valid() else {}
        if not sent.get("history"):
            return None
        position = StartFrom.TIMESTAMP if sent["gone_from"] is None else StartFrom.OFFSET
        found = selectors.gone_behind(group, position, offset=sent["gone_from"], timestamp=sent["gone_since"])
        return found if found is not None and found.in_history else None


def place_of(gone: selectors.Gone | None, offset: int) -> dict[str, str]:
    """The place that a preview was about, as the form of a seek takes it: older than the stream, or an offset in it."""
    if gone is not None and gone.since is not None:
        return {"position": StartFrom.TIMESTAMP, "at": gone.since.isoformat()}
    at = offset if gone is None or gone.from_offset is None else gone.from_offset
    return {"position": StartFrom.OFFSET, "at": str(at)}
