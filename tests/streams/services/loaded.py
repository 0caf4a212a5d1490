"""Which rows a call loads from the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import Model
from django.db.models.signals import post_init


@contextmanager
def loaded(model: type[Model]) -> Iterator[list[Any]]:
    """The rows of a model that are loaded inside."""
    found: list[Any] = []

    def note(instance: Any, **_: object) -> None:
        if instance.pk is not None:
            found.append(instance)

    post_init.connect(note, sender=model)
    try:
        yield found
    finally:
        post_init.disconnect(note, sender=model)
