"""What a group's page says beside its status: as of when it is, where to look, and that a seek ends it."""

import re
import time

import pytest
from django.test import Client

from streams import selectors, store
from streams.log import groups
from streams.models import Group
from tests.dashboard.conftest import MakeStream
from tests.dashboard.groups.test_groups import BODIES, PAGE, fetched, make_group
from tests.dashboard.verdicts import judged

AS_OF = re.compile(
    r'data-field="judged_ms" data-format="differs" data-value="null"( hidden)?>as of <time([^>]*)>'
)


@pytest.fixture
def billing(make_stream: MakeStream) -> Group:
    return make_group(make_stream("orders", bodies=BODIES))


def as_of(owner: Client) -> tuple[bool, int | None]:
    """Whether the page says as of when its status is, and the unix ms that it says."""
    ((hidden, time_),) = AS_OF.findall(owner.get(PAGE).content.decode())
    ms = re.search(r'data-ms="(\d+)"', time_)
    return not hidden, int(ms[1]) if ms else None


def test_a_status_says_as_of_when_it_is(owner: Client, billing: Group) -> None:
    assert as_of(owner) == (False, None)
    judged(billing.stream, "billing", "slow", ago_ms=8_000)
    is_shown, ms = as_of(owner)
    assert is_shown
    assert ms is not None
    assert 8_000 <= time.time() * 1000 - ms < 12_000
    judged(billing.stream, "billing", "slow", ago_ms=31_000)
    assert as_of(owner) == (False, None)


def test_of_a_group_at_rest_the_status_is_of_now(owner: Client, billing: Group) -> None:
    leases = fetched(billing, limit=len(BODIES))
    store.log().run(groups.ack(billing.stream.stream_id, "billing", "leases", leases))
    judged(billing.stream, "billing", "ok", lag=0, ago_ms=600_000)
    assert selectors.group_view(billing).health.status == "ok"
    assert as_of(owner) == (False, None)


def test_a_seek_ends_the_verdict_of_before(owner: Client, billing: Group) -> None:
    generation = selectors.group_view(billing).state.generation
    judged(billing.stream, "billing", "stopped", generation=generation)
    assert "It is stopped." in owner.get(PAGE).content.decode()
    page = owner.post(f"{PAGE}seek/", {"next_offset": 11, "seen_from": 1}, follow=True).content.decode()
    standing = page.split('<p class="standing">')[1].split("</p>")[0]
    assert "Seek since the last sample; the status needs 50 s of samples after it." in standing
    assert "It is stopped." not in standing
    assert selectors.group_view(billing).health.status == "unknown"
    assert as_of(owner) == (False, None)


def test_a_poisoned_group_leads_to_what_is_on_its_last_delivery(
    owner: Client, make_stream: MakeStream
) -> None:
    group = make_group(make_stream("orders", bodies=BODIES), max_deliver=2)
    fetched(group, limit=5)
    store.log().run(groups.nack(group.stream.stream_id, "billing", "offsets", [1, 2]))
    fetched(group, limit=2)
    judged(group.stream, "billing", "ok", pending=5)
    assert "?deliveries=" not in owner.get(PAGE).content.decode()
    judged(group.stream, "billing", "poisoned", pending=5)
    page = owner.get(PAGE).content.decode()
    (way,) = re.findall(r'It is poisoned\.</span>.*?<a [^>]*href="([^"]*)"', page, re.DOTALL)
    assert way == f"{PAGE}pending/?deliveries=2"
    desk = owner.get(way).content.decode()
    assert re.findall(r'aria-label="Select (\d+)"', desk) == ["1", "2"]
