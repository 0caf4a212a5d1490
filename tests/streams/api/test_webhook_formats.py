"""What a chat is posted: the words of the mail, in the shape that it shows, and nothing that a name could add."""

import json
from typing import Any

import pytest

from streams.models import AlertRule
from streams.services import digests, webhook_formats
from streams.services.alerts import alert_begin
from tests.findings import over
from tests.streams.api.conftest import Api
from tests.streams.api.notified import deliver
from tests.streams.test_webhooks import Receiver

pytestmark = pytest.mark.usefixtures("alone")

RULE: dict[str, Any] = {"name": "lags", "stream": "orders*", "watch": "lag", "limit": 2}
TOLD = {
    "what": "fired",
    "rule": "lags",
    "workspace": "default",
    "began_at": "2026-11-26T07:00:00.000Z",
    "ended_at": None,
}


def posted(hook: Receiver) -> list[Any]:
    return [json.loads(body) for _, _, body in hook.taken]


@pytest.mark.parametrize("shape", ["slack", "teams"])
def test_a_chat_is_posted_what_the_mail_would_say(owner: Api, hook: Receiver, shape: str) -> None:
    answer = owner.post("alerts/rules/", RULE | {"webhook_url": hook.url, "webhook_format": shape})
    assert answer.json()["webhook_format"] == shape
    rule = AlertRule.objects.get(name="lags")
    alert_begin(rule, value=3.0, finding=over("lag", 3.0, limit=2.0, stream="orders-1"))
    deliver()
    [sent] = posted(hook)
    subject, sentence = (
        f"[OKMQ {owner.workspace.name}] lags is firing",
        "Group billing of orders-1: lag 3, above 2.",
    )
    if shape == "slack":
        assert list(sent) == ["text"]
        assert sent["text"].startswith(f"*{subject}*\n{sentence}\n")
        return
    [card] = sent["attachments"]
    assert card["contentType"] == "application/vnd.microsoft.card.adaptive"
    lines = [block["inlines"][0]["text"] for block in card["content"]["body"]]
    assert lines[:2] == [subject, sentence]


def test_a_test_of_the_rule_has_the_shape_of_what_fires(owner: Api, hook: Receiver) -> None:
    owner.post("alerts/rules/", RULE | {"webhook_url": hook.url, "webhook_format": "slack"})
    assert owner.post("alerts/rules/lags/test").json() == [{"channel": "webhook", "error": ""}]
    assert "This is a test of the rule lags" in posted(hook)[0]["text"]


def test_another_shape_holds_for_what_waits(owner: Api, hook: Receiver) -> None:
    owner.post("alerts/rules/", RULE | {"webhook_url": hook.url})
    rule = AlertRule.objects.get(name="lags")
    alert = alert_begin(rule, value=3.0, finding=over("lag", 3.0, limit=2.0, stream="orders-1"))
    assert owner.patch("alerts/rules/lags", {"webhook_format": "slack"}).status_code == 200
    alert.refresh_from_db()
    assert alert.ended_at is None  # who is told in what shape changes nothing of what fires
    deliver()
    assert [list(sent) for sent in posted(hook)] == [["text"]]


@pytest.mark.parametrize("shape", ["Slack", "", None, "xml", 1])
def test_a_shape_that_there_is_not_is_refused(owner: Api, hook: Receiver, shape: Any) -> None:
    answer = owner.post("alerts/rules/", RULE | {"webhook_url": hook.url, "webhook_format": shape})
    assert answer.status_code == 400
    assert answer.json()["error"]["details"]["fields"] == ["webhook_format"]
    assert not AlertRule.objects.exists()


@pytest.mark.parametrize(
    "name", ["<!channel>", "<https://evil.example|click>", "a & b", "[x](https://evil.example)"]
)
def test_a_name_makes_no_mention_and_no_link(name: str) -> None:
    told = json.dumps({**TOLD, "sentence": f"Stream {name}: lag 3, above 2."})
    slack = json.loads(webhook_formats.shaped(told, "slack"))["text"]
    assert "<" not in slack
    assert name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") in slack
    card = json.loads(webhook_formats.shaped(told, "teams"))["attachments"][0]["content"]
    assert {block["type"] for block in card["body"]} == {"RichTextBlock"}
    assert f"Stream {name}: lag 3, above 2." in [block["inlines"][0]["text"] for block in card["body"]]


@pytest.mark.parametrize("shape", ["slack", "teams"])
@pytest.mark.parametrize("lines", [1, 20, 90, 100, 110, 130, 200])
def test_a_digest_is_no_larger_than_a_chat_takes(shape: str, lines: int) -> None:
    many = [{**TOLD, "sentence": f"Stream {n}: läg 3, above 2."} for n in range(lines)]
    told = {"what": "digest", "workspace": "default", "sentence": "Many.", "messages": many}
    text = webhook_formats.shaped(json.dumps(told), shape)
    assert len(text.encode()) <= webhook_formats.LONGEST
    shown = sum(f"Stream {n}:" in text for n in range(lines))
    if shown < lines:
        assert len(text) > webhook_formats.LONGEST - 500
        assert "more lines" in text


def test_a_long_digest_is_cut_where_chats_would_refuse_it() -> None:
    many = [{**TOLD, "sentence": f"Stream {n}: lag 3, above 2."} for n in range(digests.MOST_TOGETHER * 3)]
    told = {"what": "digest", "workspace": "default", "sentence": "Many.", "messages": many}
    text = json.loads(webhook_formats.shaped(json.dumps(told), "slack"))["text"]
    assert len(text) <= webhook_formats.LONGEST + 100
    assert text.endswith("…")
