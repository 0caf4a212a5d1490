from streams.log import groups
from streams.log.client import Log
from streams.log.groups import Settings
from tests.streams.log.messages import fill
from tests.streams.upkeep.conftest import MakeStream
from tests.streams.upkeep.test_retention import stored, tend


def test_the_worker_takes_away_what_every_group_is_done_with(
    valkey: str, log: Log, make_stream: MakeStream
) -> None:
    stream = make_stream(retention="interest")
    log.run(groups.group_publish(stream, "a", Settings()))
    fill(log, stream, 4)
    log.run(groups.fetch(stream, "a", limit=4))
    log.run(groups.ack(stream, "a", "offsets", [2, 4]))
    tend(valkey, stream)
    assert stored(log, stream) == 2
