"""Keys of the log that belong to no stream, put right where what they hold cannot be read."""

import logging

from streams import store
from streams.log import fsck_parts, keys, lineage
from streams.models import Workspace
from streams.services.offsets_reserved import highest_epoch

log = logging.getLogger(__name__)


def shared_repair() -> list[str]:
    """Take away what cannot be read and follows from the database, or is written anew by whoever goes by it.

    Nothing works without these keys. What follows from nothing is left to ``okmq_fsck``.

    Returns:
        The keys of which something was taken away; the log is to be told everything again.

    Raises:
        StoreUnavailable: the next call does what is left.
    """
    found = store.log().run(fsck_parts.look_shared(list(Workspace.objects.values_list("pk", flat=True))))
    derived = [each for each in found if each.is_derived]
    for part in derived:
        log.warning("Taken away and told again: %s", part.sentence)
    store.log().run(fsck_parts.take_away(derived))
    if keys.EPOCH in {part.key for part in derived}:
        store.log().run(lineage.raise_above(highest_epoch()))
    return [part.key for part in derived]
