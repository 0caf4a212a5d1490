"""Every form of settings that nobody touched is sent back without a change, whatever the API has set before.

The random settings are drawn over what the API accepts.
"""

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.models import Event, Workspace
from tests.dashboard.browser_forms import untouched
from tests.dashboard.conftest import MakeStream
from tests.dashboard.test_rule_pages import text_of
from tests.streams.api.conftest import Api, caller

GROUP = "streams/orders/groups/billing"
STREAM = "streams/orders"
RULE = "alerts/rules/lags"
PAGES = {GROUP: f"/{GROUP}/settings/", STREAM: f"/{STREAM}/settings/", RULE: "/alerts/lags/"}
RETENTION = f"/{STREAM}/retention/"

ODD = "ab \n\r\t,<&\"'é:"
LINES = st.text(ODD, max_size=12) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
)
TOKENS = st.text("ab,-é/&<\"'", min_size=1, max_size=6)
WAITS = st.floats(0.1, 2_592_000) | st.integers(1, 2_592_000) | st.sampled_from([0.1, 1_209_601, 123_456.7])
WHOLE = st.integers(1, 2**53 - 1)
LIMITS = st.floats(0, 1e15) | st.integers(0, 10**15)


@st.composite
def pattern(draw: st.DrawFn) -> str:
    """A key pattern: its last token may be ``>``."""
    head = draw(st.lists(TOKENS | st.just("*"), max_size=3))
    return ".".join([*head, draw(TOKENS | st.sampled_from("*>"))])


PATTERNS = st.lists(pattern(), max_size=4)
OF_GROUP = st.fixed_dictionaries(
    {
        "description": LINES,
        "ack": st.sampled_from(["explicit", "all", "none"]),
        "ack_wait": WAITS,
        "max_deliver": st.just(-1) | st.integers(3, 2**53 - 1),
        "backoff": st.lists(WAITS, max_size=3),
        "max_ack_pending": st.integers(1, 10_000_000),
        "filter_keys": PATTERNS,
        "inactive_after": st.none() | WAITS,
        "ordered_by_key": st.booleans(),
    }
)
LABELS = st.dictionaries(st.text("ab ,é<&", min_size=1, max_size=5), LINES, max_size=3)
OF_STREAM = st.fixed_dictionaries(
    {
        "description": LINES,
        "labels": LABELS,
        "keys": PATTERNS,
        "max_message_bytes": st.integers(1, 16 * 1024 * 1024) | st.sampled_from([1024, 3 * 1024**2]),
        "dedup_window": st.integers(1, 604_800) | st.sampled_from([60, 3600, 86_400]),
        "archive": st.booleans(),
    }
)
OF_RETENTION = st.fixed_dictionaries(
    {
        "ttl": st.none() | st.integers(1, 100 * 365 * 86_400),
        "max_messages": st.none() | WHOLE,
        "max_bytes": st.none() | WHOLE,
        "max_messages_per_key": st.none() | WHOLE,
        "retention": st.sampled_from(["limits", "interest"]),
        "discard": st.sampled_from(["old", "new"]),
    }
) | st.just({"policy": "week"})
STATUSES = st.lists(st.sampled_from(["slow", "stalled", "losing", "ok"]), min_size=1, max_size=10)
UNTIL = st.datetimes(datetime(2030, 1, 1), datetime(9998, 1, 1)) | st.datetimes(
    datetime(2020, 1, 1), datetime(2021, 1, 1)
)
TOLD = {
    "stream": LINES.filter(lambda text: text.strip("\r\n") != ""),
    "for_seconds": st.integers(0, 86_400),
    "muted": st.none() | st.tuples(UNTIL, LINES),
    "webhook_format": st.sampled_from(["okmq", "slack", "teams"]),
    "most_messages": st.none() | st.integers(1, 1000),
    "most_minutes": st.integers(1, 1440),
}
OF_RULE = st.fixed_dictionaries(
    TOLD | {"group": LINES, "watch": st.sampled_from(["lag", "no_consumer"]), "limit": LIMITS}
) | st.fixed_dictionaries(TOLD | {"group": LINES, "watch": st.just("status"), "statuses": STATUSES})

AT_RANDOM = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def api(workspace: Workspace, make_stream: MakeStream) -> Api:
    api = caller(workspace)
    make_stream("orders")
    for path, wanted in (
        ("streams/orders/groups/", {"name": "billing"}),
        ("alerts/rules/", {"name": "lags", "stream": "orders", "watch": "lag", "limit": 1}),
        ("policies/", {"name": "week", "ttl": 604_801}),
    ):
        assert api.post(path, wanted).status_code == 201
    return api


def set_to(api: Api, path: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """All that the API tells of a thing, once it is set to this."""
    answer = api.patch(path, wanted)
    assert answer.status_code == 200, answer.content
    return settings_of(api, path)


def settings_of(api: Api, path: str) -> dict[str, Any]:
    told = json.loads(api.get(path).content)
    return {name: value for name, value in told.items() if name != "updated_at"}


def sent_back(owner: Client, api: Api, path: str, wanted: dict[str, Any]) -> None:
    """Set this over the API, open the page, send its form back: nothing has changed, and nothing was asked."""
    held, events = set_to(api, path, wanted), Event.objects.count()
    answer = owner.post(PAGES[path], untouched(owner.get(PAGES[path])))
    assert answer.status_code == 302, text_of(answer)
    assert (settings_of(api, path), Event.objects.count()) == (held, events)


@pytest.mark.parametrize(
    "wanted",
    [
        {"filter_keys": ["a,b.>"]},
        {"filter_keys": ["a,", ",b", "c"]},
        {"filter_keys": ["é" * 255] * 100},
        {"ack_wait": 1_209_601},
        {"ack_wait": 100.0625},
        {"ack_wait": 0.30000000000000004},
        {"backoff": [1.5, 123_456.7, 1_209_601]},
        {"backoff": [1_234_567.0000001] * 100, "max_deliver": -1},
        {"inactive_after": 2_592_000},
        {"inactive_after": 100_000.5},
        {"inactive_after": 0.1234567890123},
        {"description": "one\ntwo\r\nthree\rfour"},
        {"description": "\n one \n"},
        {"description": "é" * 4096},
        {"max_deliver": 2**53 - 1},
    ],
    ids=lambda wanted: str(wanted)[:60],
)
def test_a_groups_settings_are_sent_back_as_they_are(owner: Client, api: Api, wanted: dict[str, Any]) -> None:
    sent_back(owner, api, GROUP, wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        {"keys": ["a,b.>"]},
        {"keys": ["a,", ",b"]},
        {"description": "\n one \r\n two\r"},
        {"labels": {"a": " b ", "c": "d\ne"}},
        {"max_message_bytes": 1_048_577, "dedup_window": 86_401},
    ],
    ids=str,
)
def test_a_streams_settings_are_sent_back_as_they_are(
    owner: Client, api: Api, wanted: dict[str, Any]
) -> None:
    sent_back(owner, api, STREAM, wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        {"limit": 0.1 + 0.2, "clear": 1e-7},
        {"limit": 1e15},
        {"group": " a\nb "},
        {"watch": "status", "limit": None, "statuses": ["slow", "ok", "slow"]},
        {"muted_until": "2126-11-22T06:00:00.123Z", "mute_reason": "moving\nthe warehouse "},
        {"muted_until": "2020-11-22T06:00:00.123Z", "mute_reason": "moved"},
    ],
    ids=str,
)
def test_a_rules_settings_are_sent_back_as_they_are(owner: Client, api: Api, wanted: dict[str, Any]) -> None:
    sent_back(owner, api, RULE, wanted)


def test_what_else_is_changed_changes_alone(owner: Client, api: Api) -> None:
    held = set_to(api, GROUP, {"filter_keys": ["a,b.>"], "ack_wait": 100.0625, "description": "one\ntwo"})
    sent = untouched(owner.get(PAGES[GROUP])) | {"max_deliver": "7"}
    assert owner.post(PAGES[GROUP], sent).status_code == 302
    now = settings_of(api, GROUP)
    changed = {name for name in held if held[name] != now[name]}
    assert (now["max_deliver"], changed) == (7, {"max_deliver"})


def test_a_pattern_is_added_to_one_with_a_comma(owner: Client, api: Api) -> None:
    for path, name in ((GROUP, "filter_keys"), (STREAM, "keys")):
        set_to(api, path, {name: ["a,b.>", "c"]})
        sent = untouched(owner.get(PAGES[path]))
        owner.post(PAGES[path], sent | {name: sent[name][0] + "\r\nd, e\r\nf "})
        assert settings_of(api, path)[name] == ["a,b.>", "c", "d", "e", "f"]


def test_a_comma_that_may_be_meant_to_separate_is_asked_about(owner: Client, api: Api) -> None:
    for path, name in ((GROUP, "filter_keys"), (STREAM, "keys")):
        for text in ("a,\r\nb", ",a"):
            answer = owner.post(PAGES[path], untouched(owner.get(PAGES[path])) | {name: text})
            assert (answer.status_code, name in answer.context["form"].errors) == (422, True)


def test_a_group_that_goes_when_idle_for_long_is_saved_again(owner: Client, api: Api) -> None:
    set_to(api, GROUP, {"inactive_after": 2_592_000})
    sent = untouched(owner.get(PAGES[GROUP]))
    assert sent["inactive_after"] == ["30 d"]
    assert owner.post(PAGES[GROUP], sent | {"description": "bills"}).status_code == 302
    assert settings_of(api, GROUP)["inactive_after"] == 2_592_000


@pytest.mark.long
@AT_RANDOM
@given(wanted=OF_GROUP)
def test_any_settings_of_a_group(owner: Client, api: Api, wanted: dict[str, Any]) -> None:
    sent_back(owner, api, GROUP, wanted)


@pytest.mark.long
@AT_RANDOM
@given(wanted=OF_STREAM)
def test_any_settings_of_a_stream(owner: Client, api: Api, wanted: dict[str, Any]) -> None:
    sent_back(owner, api, STREAM, wanted)


@pytest.mark.long
@AT_RANDOM
@given(wanted=OF_RETENTION)
def test_any_limits_of_a_stream(owner: Client, api: Api, wanted: dict[str, Any]) -> None:
    """Looked at, they would change nothing; saved, they do not."""
    held, events = set_to(api, STREAM, {"policy": None} | wanted), Event.objects.count()
    sent = untouched(owner.get(RETENTION))
    assert owner.get(RETENTION, sent).context["effect"].changes == {}
    assert owner.post(RETENTION, sent).status_code == 302
    assert (settings_of(api, STREAM), Event.objects.count()) == (held, events)


@pytest.mark.long
@AT_RANDOM
@given(wanted=OF_RULE)
def test_any_settings_of_a_rule(owner: Client, api: Api, wanted: dict[str, Any]) -> None:
    until, reason = wanted.pop("muted") or (None, "")
    wanted |= {"muted_until": until and until.replace(tzinfo=UTC).isoformat(), "mute_reason": reason}
    nothing: dict[str, Any] = {"limit": None, "clear": None, "statuses": [], "group": ""}
    assert not math.isnan(wanted.get("limit", 0))
    sent_back(owner, api, RULE, nothing | wanted)
