"""In what shape a webhook tells: our own JSON, or what the chat that takes it shows as a message.

Sources: Slack, Sending messages using incoming webhooks, and Formatting text for app surfaces (escapes); Microsoft
Teams, Create incoming webhooks with Workflows, and Adaptive Cards 1.4.
"""

import bisect
import json
from collections.abc import Sequence
from typing import Any

from streams.services import digests

OKMQ, SLACK, TEAMS = "okmq", "slack", "teams"
FORMATS = (OKMQ, SLACK, TEAMS)
"""Mattermost reads what Slack reads."""

LONGEST = 20_000
"""Bytes of what is posted: Teams takes 28 KB, Slack 40,000 characters; the rest of a digest is read in the console."""


def shaped(body: str, webhook_format: str) -> str:
    """What is posted, as JSON text.

    Args:
        body: what is told, as ``digests.body_of`` has it.
        webhook_format: one of ``FORMATS``.
    """
    if webhook_format == OKMQ:
        return body
    subject, text = digests.mail_of(json.loads(body))
    lines = text.strip().split("\n")
    shape = _for_slack if webhook_format == SLACK else _for_teams

    def of_the_first(many: int) -> str:
        left = [f"and {len(lines) - many} more lines…"] if many < len(lines) else []
        return json.dumps(shape(subject, [*lines[:many], *left]))

    whole = of_the_first(len(lines))
    if len(whole) <= LONGEST:
        return whole
    too_many = bisect.bisect_right(range(len(lines)), LONGEST, key=lambda many: len(of_the_first(many)))
    return of_the_first(too_many - 1)


def _for_slack(subject: str, lines: Sequence[str]) -> dict[str, Any]:
    told = _escaped("\n".join(lines))
    return {"text": f"*{_escaped(subject)}*\n{told}"}


def _escaped(text: str) -> str:
    """Without links, mentions and channels that somebody's names would make."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _for_teams(subject: str, lines: Sequence[str]) -> dict[str, Any]:
    """A card of rich text, which no name can make links or lists of, as it could of Markdown."""
    blocks = [
        {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": line, **how}]}
        for line, how in [(subject, {"weight": "Bolder"}), *((line, {}) for line in lines if line)]
    ]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}
