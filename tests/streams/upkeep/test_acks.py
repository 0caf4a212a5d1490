"""How many messages the groups of a stream finish a second."""

from msgspec.structs import replace

from streams.log.group_meta import Counters
from streams.upkeep.acks import Acks

IDLE = Counters(*[0] * len(Counters.__struct_fields__))
BILLING, SEARCH, OTHER = ("orders", "billing"), ("orders", "search"), ("clicks", "billing")


def acked(count: int) -> Counters:
    return replace(IDLE, acked=count)


def test_the_groups_of_a_stream_are_added_up() -> None:
    acks = Acks()
    assert acks.look({BILLING: acked(100), SEARCH: acked(5), OTHER: acked(7)}, at_s=10) == {}
    found = acks.look({BILLING: acked(110), SEARCH: acked(7), OTHER: acked(7)}, at_s=12)
    assert found == {"orders": 6.0}


def test_a_group_that_is_made_again_has_done_nothing() -> None:
    acks = Acks()
    acks.look({BILLING: acked(100)}, at_s=10)
    assert acks.look({BILLING: acked(3)}, at_s=11) == {}
    assert acks.look({BILLING: acked(4)}, at_s=12) == {"orders": 1.0}


def test_what_a_group_did_while_nobody_looked_is_no_rate() -> None:
    acks = Acks()
    acks.look({BILLING: acked(100)}, at_s=10)
    acks.look({}, at_s=11)
    assert acks.look({BILLING: acked(900)}, at_s=12) == {}
