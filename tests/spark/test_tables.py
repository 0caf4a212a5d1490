"""What a process knows of the log of batches, shared by its queries."""

from collections.abc import Callable, Iterator
from typing import Any

from spark.batches import Batch
from spark.tables import KnownBatches


class Log:
    """A history of one batch, in whose reading something else happens."""

    def __init__(self, meanwhile: Callable[[], Any] = lambda: None) -> None:
        self.meanwhile = meanwhile

    def newest_first(self) -> Iterator[Batch]:
        yield Batch(
            number=1, query="q", batch_id=0, start={}, end={"a": 1}, files=[], staging="s", written_ms=0
        )
        self.meanwhile()


def test_a_batch_that_two_queries_learn_of_at_the_same_moment_is_known_once() -> None:
    known = KnownBatches()
    outer: Any = Log(meanwhile=lambda: known.refresh(inner))
    inner: Any = Log()
    assert [batch.number for batch in known.refresh(outer)] == [1]
    assert [batch.number for batch in known.refresh(inner)] == [1]
