"""Groups of the log put right by the database: what a store that went away, or a process that ended, left undone."""

import contextlib
from collections.abc import Sequence

from django.db.models import Q

from streams import store
from streams.log import damage, standing
from streams.log.errors import StreamNotFound
from streams.models import Group, Stream
from streams.services.groups import group_publish, group_remove_leftover


def groups_repair(stream_ids: Sequence[str]) -> list[str]:
    """Tell the log of groups that it does not have, or has with other settings; take out those that were deleted.

    Args:
        stream_ids: of the streams looked at, whose servers answer.

    Returns:
        The names of the groups that were put right.

    Raises:
        StoreUnavailable: the next call does what is left.
    """
    # The log first: what it has by then was in the database before, so one that is missing there was deleted.
    in_log = store.log().run(standing.names_of(stream_ids))
    rows = {
        (stream_id, name): pk
        for stream_id, name, pk in Group.objects.values_list("stream__stream_id", "name", "pk")
    }
    looked_at, repaired = set(stream_ids), []
    known = {(stream_id, name) for stream_id, names in in_log.items() for name in names}
    missing = [pk for at, pk in rows.items() if at[0] in looked_at and at not in known]
    untold = Group.objects.select_related("stream").filter(Q(pk__in=missing) | Q(is_told=False))
    for group in untold:
        if group.stream.stream_id in looked_at:
            with contextlib.suppress(StreamNotFound), damage.left_to_fsck():
                group_publish(group)
                repaired.append(group.name)
    for stream_id, name in sorted(known - rows.keys()):
        stream = Stream.objects.filter(stream_id=stream_id).first()
        if stream is not None and group_remove_leftover(stream, name):
            repaired.append(name)
    return repaired
