"""In what shape a webhook tells: our own JSON, or what the chat that takes it shows as a message.

Sources: Slack, Sending messages using incoming webhooks, and Formatting text for app surfaces (escapes); Microsoft
Teams, Create incoming webhooks with Workflows, and Adaptive Cards 1.4.
"""

import json
from typing import Any

from streams.services import digests

OKMQ, SLACK, TEAMS = "okmq", "slack", "teams"
FORMATS = (OKMQ, SLACK, TEAMS)
"""Mattermost, Rocket.Chat and Discord (at its ``/slack`` address) read what Slack reads."""

LONGEST = 20_000
"""Characters of a text: chats cut off or refuse more, and the end of a digest may be read in the console."""


def shaped(body: str, webhook_format: str) -> str:
    """What is posted, as JSON text.

    Args:
        body: what is told, as ``digests.body_of`` has it.
        webhook_format: one of ``FORMATS``.
    """
    if webhook_format == OKMQ:
        return body
    subject, text = digests.mail_of(json.loads(body))
    text = text.strip()
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}…"
    told = _for_slack(subject, text) if webhook_format == SLACK else _for_teams(subject, text)
    return json.dumps(told)


def _for_slack(subject: str, text: str) -> dict[str, Any]:
    return {"text": f"*{_escaped(subject)}*\n{_escaped(text)}"}


def _escaped(text: str) -> str:
    """Without links, mentions and channels that somebody's names would make."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _for_teams(subject: str, text: str) -> dict[str, Any]:
    """A card of rich text, which no name can make links or lists of, as it could of Markdown."""
    blocks = [
        {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": line, **how}]}
        for line, how in [(subject, {"weight": "Bolder"}), *((line, {}) for line in text.split("\n") if line)]
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
