"""What a group's settings would take away is agreed to before it is so."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest

from dashboard.confirmations import ConfirmForm
from dashboard.groups.group_effects import SHOWN, ShownEffect
from dashboard.shown import Shown
from dashboard.views.door import shown_then


def effect_then(request: HttpRequest) -> Mapping[str, Shown]:
    """What the form says that its page had shown of an effect, by ``SHOWN``."""
    return {what: shown_then(request, what=what) for what in SHOWN}


def question_of(request: HttpRequest, effect: ShownEffect) -> tuple[dict[str, Any], int] | None:
    """What to ask, with the status of the answer; None where nothing goes, or what goes was shown and agreed to."""
    if not effect.takes_something:
        return None
    then = effect_then(request)
    asked = {"effect": effect, "confirm": ConfirmForm(phrase=effect.phrase)}
    if not then[""].at_ms:
        return asked, 200
    if effect.has_grown(then):
        return asked | {"has_grown": True}, 409
    confirm = ConfirmForm(request.POST, phrase=effect.phrase)
    return None if confirm.is_valid() else (asked | {"confirm": confirm}, 422)
