"""A repair beside a worker that makes again what is missing, between one look and the next."""

import pytest

from streams import store
from streams.access import SYSTEM
from streams.log import fsck_groups, group_meta, groups, keys, standing
from streams.log.append import append
from streams.log.client import Op
from streams.log.entries import NewMessage
from streams.log.fsck import Finding
from streams.models import Group, Stream
from streams.services.fsck import log_check
from streams.services.group_repairs import groups_repair
from streams.services.groups import group_create

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("damage", ["gone", "garbage"])
def test_a_group_that_is_made_again_meanwhile_begins_behind_what_it_has_out(
    stream: Stream, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, stream_id = store.log(), stream.stream_id
    group, _ = group_create(stream, name="g", settings={}, actor=SYSTEM)
    log.run(append(stream_id, [NewMessage(id=str(n), body=b"1") for n in range(30)]))
    log.run(groups.fetch(stream_id, "g", limit=20))
    key = keys.group(stream_id, "g")
    if damage == "gone":
        log.client.execute_command("DEL", key)
    else:
        log.client.execute_command("HSET", key, group_meta.COUNTERS, b"\xc1")
    Group.objects.filter(pk=group.pk).update(is_told=False)
    look = fsck_groups.look

    def look_and_let_work(stream_id: str, *, last: int) -> Op[list[Finding]]:
        found = yield from look(stream_id, last=last)
        groups_repair([stream_id])
        return found

    monkeypatch.setattr(fsck_groups, "look", look_and_let_work)
    assert [each for each in log_check(repair=True).findings if each.stream_id == stream_id] == []
    assert log.run(standing.inspect(stream_id, "g")).delivered_offset == 20
    assert [each for each in log_check().findings if each.stream_id == stream_id] == []
