"""What the doctor tells: one finding each, with what to do about it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from okmq.env import Env


@dataclass(frozen=True, kw_only=True)
class Told:
    """One finding: ``todo`` is empty where all is well; ``grave`` where OKMQ does not work as it is."""

    about: str
    sentence: str
    todo: str = ""
    grave: bool = False


Look = Callable[[Env], Iterator[Told]]
