"""A message as the pages show it."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from dashboard import formats
from dashboard.browse import bodies, trees
from dashboard.browse.bodies import Layout
from dashboard.browse.chosen_fields import Cell, ChosenField, cell_of
from dashboard.browse.trees import Tree
from streams.log.entries import Message


@dataclass(frozen=True, slots=True)
class MessageRow:
    """One message: a row of a table, and what opens under it."""

    message: Message
    fields: Sequence[ChosenField] = ()

    @property
    def cells(self) -> list[Cell | None]:
        """What stands at the chosen fields."""
        return [cell_of(self.message.body, field) for field in self.fields]

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
