"""What a group's settings would take away is agreed to before it is so."""

from typing import Any

from django.http import HttpRequest

from dashboard.confirmations import ConfirmForm
from dashboard.groups.group_effects import GroupEffect
from dashboard.quantities import number_of
from dashboard.views.door import shown_then

BURIED = "buried_"
"""What the form of a page calls what it said becomes dead letters."""


def question_of(request: HttpRequest, effect: GroupEffect) -> tuple[dict[str, Any], int] | None:
    """What to ask, with the status of the answer; None where nothing goes, or what goes was shown and agreed to."""
    if not effect.takes_something:
        return None
    then = shown_then(request)
    letters, going = (
        number_of(request.POST.get(f"seen_{name}"), default=0, low=0, high=2**62)
        for name in ("letters", "going")
    )
    asked = {"effect": effect, "confirm": ConfirmForm(phrase=effect.phrase)}
    if not then.at_ms:
        return asked, 200
    if effect.has_grown(then=then, buried=shown_then(request, what=BURIED), letters=letters, going=going):
        return asked | {"has_grown": True}, 409
    confirm = ConfirmForm(request.POST, phrase=effect.phrase)
    return None if confirm.is_valid() else (asked | {"confirm": confirm}, 422)
