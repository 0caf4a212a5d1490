"""What members saw, and whether it can have happened."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any


@dataclass(frozen=True, order=True)
class Delivery:
    """One delivery as its member saw it; ``asked`` and ``got`` are the unix seconds around it."""

    number: int
    asked: float
    got: float
    id: str
    member: str


@dataclass
class History:
    """Deliveries, give-backs and acknowledgements by offset."""

    deliveries: dict[int, list[Delivery]] = field(default_factory=lambda: defaultdict(list))
    given_back: dict[tuple[int, int], float] = field(default_factory=dict)
    """(offset, number of the delivery) → when its nack was sent."""
    acked: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """When the answer came that counted the acknowledgement."""

    @classmethod
    def read(cls, files: Iterable[Path]) -> "History":
        """The notes of all members; a line that a killed member did not finish is left out."""
        history = cls()
        for file in files:
            for line in file.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    history._take(file.stem, *json.loads(line))
        return history

    def _take(self, member: str, what: str, began: float, ended: float, about: list[Any]) -> None:
        for each in about:
            match what, each:
                case "fetch", [int(offset), int(number), _, str(id_)]:
                    self.deliveries[offset].append(Delivery(number, began, ended, id_, member))
                case "nack", [int(offset), int(number)]:
                    self.given_back[offset, number] = began
                case "acked", int(offset):
                    self.acked[offset].append(ended)
                case _:
                    raise AssertionError(f"{member} noted {what} {each!r}")

    def faults(self, *, ack_wait_s: float) -> list[str]:
        """Every contradiction to: one lease a message at a time, and what is acknowledged stays so."""
        found = []
        for offset, unsorted in self.deliveries.items():
            deliveries = sorted(unsorted)
            answers = self.acked.get(offset, [])
            if len(answers) > 1:
                found.append(f"{offset} was counted as acknowledged {len(answers)} times")
            found += [
                f"{offset} was delivered to {each.member} after it was acknowledged"
                for each in deliveries
                if answers and each.asked > min(answers)
            ]
            for before, after in pairwise(deliveries):
                if before.number == after.number:
                    found.append(
                        f"{offset}: {before.member} and {after.member} both have delivery {after.number}"
                    )
                elif after.got < before.asked + ack_wait_s and (offset, before.number) not in self.given_back:
                    found.append(f"{offset}: the leases of {before.member} and {after.member} overlap")
                if before.id != after.id:
                    found.append(f"{offset} was {before.id} and is {after.id}")
        return found
