"""The filter ``date`` as Django has it, for every template: in the active zone, also at the edges of its calendar."""

from datetime import datetime
from typing import Any

from django import template
from django.template import defaultfilters
from django.utils.timezone import is_aware

from dashboard import formats

register = template.Library()


@register.filter
def date(value: Any, form: str | None = None) -> str:
    """A time in the active zone, or as it is after ``|utc``.

    Django's own has the template engine convert what it gets, which raises where the zone has no such day.
    """
    if isinstance(value, datetime) and is_aware(value) and getattr(value, "convert_to_local_time", True):
        value = formats.local(value)
    return str(defaultfilters.date(value, form))
