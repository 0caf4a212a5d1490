"""The data plane's paths for the OpenAPI document: it is no DRF view, so it is described by hand."""

from collections.abc import Mapping
from typing import Any

from streams import naming
from streams.api.fields import LARGEST_INTEGER
from streams.api.schema import ALWAYS, TOO_LARGE, WITH_BODY, path_parameter, refusals_of

LONGEST_WAIT_S = 30
STREAM = "/api/v1/streams/{name}"

Schema = dict[str, Any]


def whole(description: str, *, minimum: int = 0, maximum: int = LARGEST_INTEGER, **more: Any) -> Schema:
    """A whole number."""
    return {"type": "integer", "minimum": minimum, "maximum": maximum, "description": description, **more}


def text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def closed(properties: Mapping[str, Schema], *, required: list[str], **more: Any) -> Schema:
    """An object that takes no other field."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
        **more,
    }


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


ID = text(
    "Unique in the stream while it is remembered: sent again it is not stored again.",
    minLength=1,
    maxLength=50,
)
KEY = text("Dot-separated tokens.", minLength=1, maxLength=naming.LONGEST_KEY, pattern=f"^{naming.KEY}$")
HEADERS = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "A flat map of strings.",
}
NULLABLE_KEY = {**KEY, "type": ["string", "null"]}

COMPONENTS: Mapping[str, Schema] = {
    "NewMessage": closed(
        {
            "id": ID,
            "body": {"description": "Any JSON value, also null; returned as the same JSON."},
            "key": NULLABLE_KEY,
            "headers": {**HEADERS, "type": ["object", "null"]},
            "ttl": whole(
                "Seconds; the earlier of it and the stream's wins.",
                minimum=1,
                maximum=315_360_000,
                type=["integer", "null"],
            ),
        },
        required=["id", "body"],
    ),
    "Publication": closed(
        {
            "messages": {"type": "array", "items": ref("NewMessage"), "maxItems": 1000},
            "expect": ref("Expectation"),
        },
        required=["messages"],
        description="Messages that are stored only if the stream stands as expected.",
    ),
    "Expectation": {
        **closed(
            {
                "last_offset": whole("The last offset; 0: none yet.", type=["integer", "null"]),
                "last_id": text("The id of the last message.", maxLength=50, type=["string", "null"]),
                "last_key_offset": {
                    "type": ["object", "null"],
                    "additionalProperties": whole("0: none."),
                    "description": "The offset of the newest message that was published under each of these keys; "
                    "0 where there was none, or that message is over or gone.",
                },
            },
            required=[],
        ),
        "type": ["object", "null"],
    },
    "Receipt": {
        "type": "object",
        "properties": {
            "id": ID,
            "offset": whole(
                "Where the message stands; of a duplicate, where the first one stands.", minimum=1
            ),
            "duplicate": {"type": "boolean", "description": "It was known and not stored again."},
        },
        "required": ["id", "offset", "duplicate"],
    },
    "Message": {
        "type": "object",
        "properties": {
            "id": ID,
            "offset": whole("Its place in the stream.", minimum=1),
            "timestamp": text("When it was stored.", format="date-time"),
            "body": {"description": "The JSON value that was published, digit for digit."},
            "key": KEY,
            "headers": HEADERS,
        },
        "required": ["id", "offset", "timestamp", "body"],
    },
    "Commit": closed({"offset": whole("Everything up to it is done; 0 is the start.")}, required=["offset"]),
    "Committed": {
        "type": "object",
        "properties": {"offset": whole("Now."), "previous": whole("Before.")},
        "required": ["offset", "previous"],
    },
    "Deleted": {
        "type": "object",
        "properties": {
            "deleted": whole("How many messages."),
            "removal": whole("Its number, where it can be undone and something went."),
            "ended": whole("The removal that became final before its time for it: a stream keeps a hundred."),
            "finals": {
                "type": "array",
                "items": whole("Its number."),
                "description": "The removals that a permanent purge made final, whole or below it.",
            },
        },
        "required": ["deleted"],
    },
}

EXAMPLE_MESSAGE = {"id": "order-7", "body": {"total": 12.5}, "key": "orders.eu.7"}


def answer(schema: Schema, description: str = "Done.", *, headers: Schema | None = None) -> Schema:
    """A successful answer."""
    shown = {"headers": headers} if headers else {}
    return {"description": description, **shown, "content": {"application/json": {"schema": schema}}}


def operation(
    name: str,
    summary: str,
    *,
    scope: str,
    success: Mapping[str, Schema],
    parameters: tuple[Schema, ...] = (),
    body: Schema | None = None,
    examples: Mapping[str, Any] | None = None,
    refusals: tuple[str, ...] = (),
    description: str = "",
) -> Schema:
    """One method of a path."""
    codes = [*ALWAYS, "forbidden", "stream_not_found", *refusals, *(WITH_BODY if body else ())]
    described: Schema = {
        "operationId": name,
        "summary": summary,
        "description": f"{description} Needs the scope `{scope}`.".strip(),
        "tags": ["messages"],
        "security": [{"token": []}],
        "parameters": list(parameters),
        "responses": {**success, **refusals_of(codes)},
    }
    if body is not None:
        media: Schema = {"schema": body}
        if examples:
            media["examples"] = {title: {"value": value} for title, value in examples.items()}
        described["requestBody"] = {"required": True, "content": {"application/json": media}}
    return described


def query(name: str, schema: Schema) -> Schema:
    """A query parameter; its description stands beside the schema."""
    inner = dict(schema)
    return {"name": name, "in": "query", "description": inner.pop("description"), "schema": inner}


UNDO = query(
    "undo",
    {"type": "boolean", "default": False, "description": "Keep what goes for a while: see `removals`."},
)

DURABILITY = {
    "Okmq-Durability": {
        "description": "What the server did before it answered, as it was set within the second before: `fsync` (on "
        "disk), `window` (on disk within about a second) or `memory`.",
        "schema": {"type": "string", "enum": ["fsync", "window", "memory"]},
    }
}
EPOCH = {
    "Okmq-Epoch": {
        "description": "How often a replica has taken the message store's place, or the store had lost everything. An "
        "offset names one message within one epoch: where the number has grown, what was acknowledged last before may "
        "be missing, and its offsets may name other messages. On every answer about messages and to consumers.",
        "schema": {"type": "integer", "minimum": 0},
    }
}
GOES_ON = {
    "Link": {
        "description": 'Where a search that stopped goes on: `<…>; rel="next"`, relative to the request.',
        "schema": {"type": "string"},
    }
}
RECEIPTS = {"type": "array", "items": ref("Receipt")}
KEY_PATTERN = text(
    "A key pattern: `*` one token, `>` the rest.", maxLength=naming.LONGEST_KEY, pattern=f"^{naming.PATTERN}$"
)


def publishing(name: str, summary: str, *, description: str, refusals: tuple[str, ...] = ()) -> Schema:
    """A method that publishes."""
    return operation(
        name,
        summary,
        scope="publish",
        body={
            "oneOf": [
                {"type": "array", "items": ref("NewMessage"), "maxItems": 1000},
                ref("NewMessage"),
                ref("Publication"),
            ]
        },
        examples={
            "several": [EXAMPLE_MESSAGE, {"id": "order-8", "body": "paid"}],
            "one": EXAMPLE_MESSAGE,
            "expecting": {"messages": [EXAMPLE_MESSAGE], "expect": {"last_offset": 6}},
        },
        success={
            "201": answer(RECEIPTS, "Stored, or known already; in input order.", headers=DURABILITY | EPOCH),
            "200": answer(RECEIPTS, "An empty array was sent.", headers=DURABILITY | EPOCH),
        },
        refusals=(
            "batch_too_large",
            "message_too_large",
            "stream_full",
            "wrong_last_offset",
            "wrong_last_id",
            "wrong_last_key_offset",
            "operation_denied",
            *refusals,
        ),
        description=description,
    )


PATHS: Mapping[str, Schema] = {
    "/api/v1/publish/{key}": {
        "parameters": [path_parameter("key")],
        "post": publishing(
            "messages_publish_by_key",
            "Publish into the one stream whose key patterns match",
            description="Messages without a key get this one. The batch is stored whole or not at all.",
            refusals=("ambiguous_key",),
        ),
    },
    f"{STREAM}/messages": {
        "parameters": [path_parameter("name")],
        "post": publishing(
            "messages_publish",
            "Publish messages: an array, one, or an object with expectations",
            description="The batch is stored whole or not at all, at contiguous offsets.",
        ),
        "get": operation(
            "messages_read",
            "Read on from the committed offset, or browse",
            scope="read",
            parameters=(
                query("limit", whole("How many at most.", minimum=1, maximum=10_000, default=10)),
                query(
                    "wait",
                    {
                        "type": "number",
                        "minimum": 0,
                        "maximum": LONGEST_WAIT_S,
                        "description": "Seconds to wait for a first message; 30 by default, 0 when browsing.",
                    },
                ),
                query("offset", whole("Browse from this offset on.")),
                query("from", text("Browse from this time on.", format="date-time")),
                query("before", whole("Browse the newest messages below this offset.")),
                query("key", KEY_PATTERN),
                query("id", text("Browse the message with this id.", minLength=1, maxLength=50)),
            ),
            success={
                "200": answer(
                    {"type": "array", "items": ref("Message")}, "In offset order.", headers=GOES_ON | EPOCH
                )
            },
            description="Reading changes nothing. An answer stops at 16 MiB, all its bytes counted, so it may hold "
            "fewer messages than asked for, but one at least. A search for a key or an id stops after five seconds: "
            "its Link names where to go on, also where nothing was found yet.",
        ),
        "delete": operation(
            "messages_purge",
            "Delete messages: all, those below an offset, all but the newest, those of a key",
            scope="manage",
            parameters=(
                query("offset", whole("Those below this offset; not together with keep.")),
                query("keep", whole("All but the newest so many.")),
                query("key", KEY_PATTERN),
                UNDO,
            ),
            success={"200": answer(ref("Deleted"))},
            refusals=("operation_denied", "removal_over", *TOO_LARGE),
            description="Offsets go on, the committed offset stays. `purge/preview` says first what would go.",
        ),
    },
    f"{STREAM}/messages/{{offset}}": {
        "parameters": [path_parameter("name"), path_parameter("offset")],
        "get": operation(
            "message_get",
            "See one message",
            scope="read",
            success={"200": answer(ref("Message"))},
            refusals=("message_not_found",),
        ),
        "delete": operation(
            "message_delete",
            "Delete one message; leaves a gap",
            scope="manage",
            parameters=(UNDO,),
            success={"200": answer(ref("Deleted"))},
            refusals=("message_not_found", "operation_denied", *TOO_LARGE),
        ),
    },
    f"{STREAM}/commit": {
        "parameters": [path_parameter("name")],
        "post": operation(
            "commit",
            "Commit a position; backwards is a rewind",
            scope="consume",
            body=ref("Commit"),
            examples={"done": {"offset": 7}},
            success={"200": answer(ref("Committed"))},
            refusals=("offset_out_of_range",),
        ),
    },
    f"{STREAM}/tail": {
        "parameters": [path_parameter("name")],
        "get": operation(
            "messages_tail",
            "Tail: new messages as server-sent events",
            scope="read",
            parameters=(
                query("offset", whole("Begin at this offset; without it, at what comes next.")),
                query("key", KEY_PATTERN),
                {
                    "name": "Last-Event-ID",
                    "in": "header",
                    "description": "Go on after this offset; wins over `offset`.",
                    "schema": {"type": "integer", "minimum": 0},
                },
            ),
            success={
                "200": {
                    "description": "`id:` is the offset, `data:` the message, a `data:` for each line of a "
                    "body sent with line breaks; a comment line every 15 s.",
                    "content": {"text/event-stream": {"schema": {"type": "string"}}},
                }
            },
        ),
    },
}
