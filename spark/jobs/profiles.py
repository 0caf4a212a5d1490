"""Looks at the bodies of days: which fields they have, of which types, and how often these are null."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from spark.batches import HistoryFile
from spark.history import History
from spark.jobs.figures import Window, reaching_into, window_frame
from spark.transforms import profiles as transforms


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProfile:
    """A field of the bodies of a day.

    Attributes:
        present: in how many bodies it is.
        types: ``object``, ``array``, ``string``, ``number``, ``boolean`` or ``null`` → how often.
    """

    name: str
    present: int
    types: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What the bodies of a day look like.

    Attributes:
        objects: how many of them are objects; others have no fields.
        unreadable: objects that could not be taken apart (a name that stands twice, numbers beyond all numbers).
        fields: the most frequent first, at most ``spark.transforms.profiles.MOST_FIELDS``.
    """

    number: int
    objects: int = 0
    unreadable: int = 0
    fields: list[FieldProfile] = field(default_factory=list)


def profiles(
    session: SparkSession, history: History, files: Iterable[HistoryFile], *, windows: Sequence[Window]
) -> dict[int, Profile]:
    """The profiles of the days among some windows, by their numbers; exact, and the same however often it is asked."""
    days = [each for each in windows if each.step == "day"]
    wanted = reaching_into(days, files)
    found = {each.number: Profile(number=each.number) for each in days}
    if not wanted:
        return found
    bodies = transforms.bodies(history.read(wanted), windows=window_frame(session, days))
    return found | {
        row.window: Profile(
            number=row.window,
            objects=row.objects,
            unreadable=row.unreadable,
            fields=[
                FieldProfile(name=each["name"], present=each.present, types=dict(each.types))
                for each in sorted(row.fields, key=lambda each: each.rank)
            ],
        )
        for row in transforms.profiles(session, bodies).collect()
    }
