"""Alerts that fire, as the page lists them: how what they are about stands now, and how it was when they began."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from streams import selectors
from streams.models import Alert, Notification
from streams.selectors import GroupView
from streams.selectors.alert_sentences import figure_of, sentence_of, sentence_of_status
from streams.selectors.alerts import AlertView, value_of

LOOKED_AT = 50
"""Of so many it is said how they stand now; more are not asked after, so that the page stays quick."""


@dataclass(frozen=True, slots=True)
class FiringRow:
    """An alert that fires.

    Attributes:
        sentence: how what it is about stands now, or as it was when it began where that is not known.
        began: what was different then, or that the sentence is of then; nothing where nothing was.
    """

    alert: Alert
    deliveries: Sequence[Notification]
    sentence: str
    began: str


def firing_rows(firing: Sequence[AlertView]) -> Iterator[FiringRow]:
    """What fires, in the order of the list."""
    now = selectors.firing_now([each.alert for each in firing[:LOOKED_AT]])
    for each in firing:
        sentence, began = _told(each.alert, now.get(each.alert.pk))
        yield FiringRow(each.alert, each.deliveries, sentence, began)


def _told(alert: Alert, view: GroupView | None) -> tuple[str, str]:
    rule = alert.rule
    value = None if view is None else value_of(rule, view)
    if view is None or value is None or not math.isfinite(value):
        return alert.sentence, _("when it began")
    if rule.watch == "status":
        sentence = sentence_of_status(alert.stream, alert.group, view.health)
        is_same = sentence == alert.sentence
        return sentence, "" if is_same else _("when it began: %(sentence)s") % {"sentence": alert.sentence}
    began, figure = figure_of(rule, alert.value), figure_of(rule, value)
    sentence = sentence_of(rule, alert.stream, alert.group, value)
    return sentence, "" if began == figure else _("%(figure)s when it began") % {"figure": began}
