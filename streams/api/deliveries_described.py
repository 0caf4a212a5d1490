"""The data plane's paths of consumer groups for the OpenAPI document: fetch, and the answers to a delivery."""

from collections.abc import Mapping
from typing import Any

from streams.api.messages_described import (
    LONGEST_WAIT_S,
    STREAM,
    Schema,
    answer,
    closed,
    operation,
    ref,
    text,
    whole,
)
from streams.api.schema import path_parameter

GROUP = f"{STREAM}/groups/{{group}}"
MOST = 10_000

OFFSETS = {
    "type": "array",
    "items": whole("A delivered offset.", minimum=1),
    "maxItems": MOST,
    "description": "The messages, by offset.",
}
LEASES = {
    "type": "array",
    "items": {"type": "string", "pattern": "^[0-9]{1,16}-[0-9]{1,16}-[0-9]{1,16}$"},
    "maxItems": MOST,
    "description": "The deliveries, strictly: one that has passed to another delivery refuses the call.",
}


def seconds(description: str, *, maximum: int, **more: Any) -> Schema:
    return {
        "type": ["number", "null"],
        "minimum": 0,
        "maximum": maximum,
        "description": description,
        **more,
    }


HOLDER: Schema = text(
    "Whose deliveries are meant: those of others at these offsets are left alone and not counted. Left out: "
    "whoever has them.",
    maxLength=255,
    type=["string", "null"],
)


def targets(name: str, **more: Schema) -> Schema:
    """An object that names deliveries by offsets or by leases, and nothing else but ``more``."""
    return {
        "title": name,
        "oneOf": [
            closed({"offsets": OFFSETS, "consumer": HOLDER, **more}, required=["offsets"]),
            closed({"leases": LEASES, **more}, required=["leases"]),
        ],
    }


COMPONENTS: Mapping[str, Schema] = {
    "Fetch": closed(
        {
            "limit": whole(
                "How many at most.", minimum=1, maximum=MOST, default=100, type=["integer", "null"]
            ),
            "wait": seconds("How long to wait for a first message.", maximum=LONGEST_WAIT_S, default=30),
            "consumer": text("Who fetches: a member of the group.", maxLength=255, type=["string", "null"]),
            "max_bytes": whole(
                "Bytes of bodies and headers at most, but one message.",
                minimum=1,
                maximum=16 * 1024 * 1024,
                type=["integer", "null"],
            ),
        },
        required=[],
    ),
    "Delivery": {
        "allOf": [
            ref("Message"),
            {
                "type": "object",
                "properties": {
                    "deliveries": whole("How often it has been delivered, with this one.", minimum=1),
                    "pending": whole("How many messages are left after it."),
                    "lease": text("This delivery, to answer it strictly."),
                },
                "required": ["deliveries", "pending", "lease"],
            },
        ]
    },
    "Ack": {
        "oneOf": [
            *targets("Ack")["oneOf"],
            closed({"up_to": whole("Everything delivered up to this offset.")}, required=["up_to"]),
        ]
    },
    "Nack": targets("Nack", delay=seconds("Until it is delivered again.", maximum=30 * 86_400, default=0)),
    "Working": targets("Working"),
    "Term": targets(
        "Term", reason=text("Why; kept with the dead letter.", maxLength=1000, type=["string", "null"])
    ),
    "Acked": {
        "type": "object",
        "properties": {"acked": whole("How many deliveries.")},
        "required": ["acked"],
    },
    "Answered": {
        "type": "object",
        "properties": {"count": whole("How many deliveries.")},
        "required": ["count"],
    },
}


IN_SLICES = (
    "By lease it is refused where one of them has passed to another delivery, before anything is done. Thousands "
    "are done some hundred at a time, between which others are served: when the store goes away in between (503), "
    "or a lease passes on just then (409), the first of them are done. The same answer again is safe: what is "
    "settled is not counted again."
)


def settled(
    name: str,
    summary: str,
    *,
    body: str,
    examples: Mapping[str, Any],
    done: str = "Answered",
    more: str = "",
) -> Schema:
    """One answer to deliveries."""
    described = operation(
        f"group_{name}",
        summary,
        scope="consume",
        body=ref(body),
        examples=examples,
        success={"200": answer(ref(done))},
        refusals=("group_not_found", "lease_lost"),
        description=f"{IN_SLICES} {more}".rstrip(),
    )
    return {
        "parameters": [path_parameter("name"), path_parameter("group")],
        "post": {**described, "tags": ["groups"]},
    }


FETCH = operation(
    "group_fetch",
    "Fetch messages for a member of the group",
    scope="consume",
    body=ref("Fetch"),
    examples={"a hundred": {"limit": 100, "wait": 30, "consumer": "worker-1"}},
    success={"200": answer({"type": "array", "items": ref("Delivery")}, "Empty when the time is up.")},
    refusals=("group_not_found",),
    description="Fetches at the same time get disjoint messages. The body may be left out.",
)

PATHS: Mapping[str, Schema] = {
    f"{GROUP}/fetch": {
        "parameters": [path_parameter("name"), path_parameter("group")],
        "post": {
            **FETCH,
            "tags": ["groups"],
            "requestBody": {**FETCH["requestBody"], "required": False},
        },
    },
    f"{GROUP}/ack": settled(
        "ack",
        "Acknowledge deliveries",
        body="Ack",
        examples={
            "these": {"offsets": [7, 8]},
            "these, unless another consumer has them by now": {"offsets": [7, 8], "consumer": "worker-1"},
            "all so far": {"up_to": 8},
        },
        done="Acked",
    ),
    f"{GROUP}/nack": settled(
        "nack",
        "Nack deliveries, to be redelivered",
        body="Nack",
        examples={"in a minute": {"offsets": [7], "delay": 60}},
        more="On its last delivery (`max_deliver`) a message becomes a dead letter instead.",
    ),
    f"{GROUP}/working": settled(
        "working",
        "Say that deliveries are still worked on",
        body="Working",
        examples={"one": {"offsets": [7]}},
    ),
    f"{GROUP}/term": settled(
        "term",
        "Never deliver again: to the dead letters",
        body="Term",
        examples={"one": {"offsets": [7], "reason": "no such customer"}},
    ),
}
