"""A message as the pages show it."""

import json
import time
from dataclasses import dataclass

from dashboard import bodies, formats, trees
from dashboard.bodies import Layout
from dashboard.trees import Tree
from streams.log.entries import Message


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message: a row of a table, and what opens under it."""

    message: Message

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
        return bodies.preview(self.message.body)

    @property
    def laid_out(self) -> Layout:
        return bodies.laid_out(self.message.body)

    def tree(self, address: str) -> Tree:
        """The body as a tree; ``address`` is that of the page that lists the stream's messages."""
        return trees.tree(self.message.body, address=address)

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
