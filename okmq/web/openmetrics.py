"""OpenMetrics text, written out: families of samples, their labels escaped (openmetrics.io, version 1.0)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
SUFFIX = {"gauge": "", "counter": "_total", "histogram": ""}


@dataclass(slots=True)
class Family:
    """Samples of one name; of a counter the name has no ``_total``, which every sample then gets."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    samples: list[str] = field(default_factory=list)
    _sample: str = field(init=False)

    def __post_init__(self) -> None:
        self._sample = f"{self.name}{SUFFIX[self.kind]}"

    def add(self, labels: str, value: float) -> None:
        """A sample of a gauge or a counter; labels as ``labels_of`` makes them."""
        self.samples.append(f"{self._sample}{{{labels}}} {value}" if labels else f"{self._sample} {value}")

    def add_histogram(
        self, labels: str, buckets: Iterable[tuple[float, int]], *, rest: int, total: float
    ) -> None:
        """A histogram: its buckets as upper bound and count, what is above all bounds, and the sum of all values."""
        count = 0
        for bound, inside in buckets:
            count += inside
            self.samples.append(f'{self.name}_bucket{{{labels},le="{bound}"}} {count}')
        count += rest
        self.samples.append(f'{self.name}_bucket{{{labels},le="+Inf"}} {count}')
        self.samples.append(f"{self.name}_count{{{labels}}} {count}")
        self.samples.append(f"{self.name}_sum{{{labels}}} {total}")


def labels_of(**labels: str) -> str:
    """Labels as they stand between the braces."""
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def text_of(families: Iterable[Family]) -> str:
    """The whole exposition; a family without a sample is left out."""
    return "\n".join([*_lines(families), "# EOF", ""])


def _lines(families: Iterable[Family]) -> Iterator[str]:
    for family in families:
        if family.samples:
            yield f"# TYPE {family.name} {family.kind}"
            yield f"# HELP {family.name} {family.help}"
            yield from family.samples


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return value
