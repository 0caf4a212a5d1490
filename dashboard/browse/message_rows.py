"""A message as the pages show it."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from dashboard import formats
from dashboard.browse import bodies, coded, trees
from dashboard.browse.bodies import Layout
from dashboard.browse.chosen_fields import Cell, ChosenField, cell_of
from dashboard.browse.coded import Decoded, Reading
from dashboard.browse.trees import Tree
from streams.log.entries import Message
from streams.models import Stream


@dataclass(frozen=True)
class MessageRow:
    """One message: a row of a table, and what opens under it.

    Attributes:
        reading: how its body is read.
        stream: its own, where rows are of several.
    """

    message: Message
    fields: Sequence[ChosenField] = ()
    reading: Reading = coded.AUTOMATIC
    stream: Stream | None = None

    @cached_property
    def decoded(self) -> Decoded | None:
        """What the body was decoded to, or why it was not; None where it is shown as sent."""
        return coded.decoded(self.message.body, self.reading)

    @property
    def shown_body(self) -> bytes:
        """The body as it is read; as sent where nothing was decoded."""
        return self.decoded.body if self.decoded else self.message.body

    @property
    def is_readable(self) -> bool:
        """Whether what is shown is JSON or other text."""
        return self.decoded is None or self.decoded.kind != coded.BINARY

    @property
    def is_json(self) -> bool:
        return self.decoded is None or self.decoded.kind == coded.JSON

    @property
    def may_be_coded(self) -> bool:
        """Whether the body is a string, which may be decoded, and is shown as sent because that was asked."""
        return self.reading.is_raw and coded.is_string(self.message.body)

    @property
    def reading_query(self) -> str:
        """What the address of the message's own page says of the reading; nothing where it is the usual one."""
        return "" if self.reading == coded.AUTOMATIC else f"?{urlencode({'decode': self.reading})}"

    @property
    def is_raw_whole(self) -> bool:
        """Whether the body as sent is shown whole."""
        return self.size <= bodies.SHOWN_BYTES

    @property
    def is_cut(self) -> bool:
        """Whether more comes out of the body than is shown."""
        return self.decoded is not None and not self.decoded.whole

    @property
    def cells(self) -> list[Cell | None]:
        """What stands at the chosen fields."""
        return [cell_of(self.shown_body, field) for field in self.fields]

    @property
    def size(self) -> int:
        return len(self.message.body)

    @property
    def published(self) -> str:
        """The exact time without its zone, which the column's heading names."""
        return formats.clock(self.message.timestamp_ms)

    @property
    def age(self) -> str:
        return formats.age(time.time() - self.message.timestamp_ms / 1000)

    @property
    def preview(self) -> str:
        return bodies.preview(self.shown_body) if self.is_readable else self.shown_body[:64].hex(" ")

    @property
    def laid_out(self) -> Layout:
        return bodies.laid_out(self.shown_body)

    def tree(self, address: str) -> Tree:
        """The body as a tree; ``address`` is that of the page that lists the stream's messages."""
        return trees.tree(self.shown_body, address=address)

    @property
    def decoded_text(self) -> str:
        """What came out of the body, with its line breaks; of bytes that are no text the first ones in hexadecimal."""
        return bodies.raw(self.shown_body) if self.is_readable else bodies.hex_dump(self.shown_body)

    @property
    def raw(self) -> str:
        return bodies.raw(self.message.body)

    @property
    def hex(self) -> str:
        return bodies.hex_dump(self.message.body)

    @property
    def id(self) -> str:
        return bodies.visible(self.message.id)

    @property
    def key(self) -> str:
        return bodies.visible(self.message.key or "")

    @property
    def headers(self) -> list[tuple[str, str]]:
        held = json.loads(self.message.headers) if self.message.headers else {}
        return [(bodies.visible(name), bodies.visible(str(value))) for name, value in held.items()]
