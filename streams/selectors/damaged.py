"""What the worker could not read of streams and groups lately, by the names that people know them by."""

from dataclasses import dataclass

from streams import store
from streams.access import Caller
from streams.log import damages
from streams.models import Stream
from streams.selectors.streams import streams_of


@dataclass(frozen=True, slots=True)
class DamagedPart:
    """A stream, or one of its groups, of which the store holds something that cannot be read.

    Attributes:
        workspace_id, stream: None and "" where it is of no stream that the database has.
        group: "" where it is the stream's own, or not known.
        why: what the reader met, and under which key.
    """

    workspace_id: int | None
    stream: str
    group: str
    why: str

    @property
    def name(self) -> str:
        """For a sentence: what it is of."""
        if not self.stream:
            return self.why.partition(": ")[0]
        return f"group {self.group!r} of stream {self.stream!r}" if self.group else f"stream {self.stream!r}"


def damaged_parts() -> list[DamagedPart]:
    """What the worker met within the last minute.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    noted = store.log().run(damages.noted())
    if not noted:
        return []
    rows = Stream.objects.filter(stream_id__in={each.stream_id for each in noted})
    known = {
        stream_id: (at, name) for stream_id, at, name in rows.values_list("stream_id", "workspace_id", "name")
    }
    return [
        DamagedPart(workspace_id, name, each.group, each.why)
        for each in sorted(noted, key=lambda each: (each.stream_id, each.group))
        for workspace_id, name in [known.get(each.stream_id, (None, ""))]
    ]


def damaged_in(caller: Caller) -> list[DamagedPart]:
    """As ``damaged_parts``, of the streams that a caller may see; what is of no stream only to who sees all."""
    found = damaged_parts()
    names = {each.stream for each in found}
    visible = (
        set(streams_of(caller).filter(name__in=names).values_list("name", flat=True)) if found else set()
    )
    here = {caller.workspace.pk, None}
    visible |= {""} if not caller.streams else set()
    return [each for each in found if each.workspace_id in here and each.stream in visible]
