"""Reading a configuration file: YAML, strictly, and where each thing stands in it."""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml.reader import ReaderError

LARGEST_BYTES = 16 * 1024 * 1024
DEEPEST = 20
TOO_DEEP = f"Nested too deeply: at most {DEEPEST} levels are accepted."

UNTAKEN = re.compile("[\0\ud800-\udfff]")
UNTAKEN_SAID = "NUL and lone surrogates are not accepted, also not written as an escape."
"""YAML's escapes can name what neither the database nor a terminal takes."""

NO_TAGS = "Tags are not accepted."
PLAIN_VALUES = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float")}
"""What a value without quotes can be besides text."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """Something wrong: line and column (both from 1), what it is about, and a sentence."""

    line: int
    column: int
    about: str
    sentence: str

    def __str__(self) -> str:
        about = f"{self.about}: " if self.about else ""
        return f"{self.line}:{self.column}: {about}{self.sentence}"


class Faulty(Exception):
    """A file that cannot be applied; nothing was changed."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = sorted(faults)


@dataclass(slots=True)
class Document:
    """A file's content, and where in it each key stands."""

    content: dict[str, Any] = field(default_factory=dict)
    places: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def fault(self, path: Path, sentence: str) -> Fault:
        """What is wrong at a path; the place of the nearest key above it where it has none of its own."""
        known = path
        while known and known not in self.places:
            known = known[:-1]
        line, column = self.places.get(known, (1, 1))
        return Fault(line, column, ".".join(path), sentence)


class _Loader(yaml.SafeLoader):
    """YAML without what is not JSON: times stay text, nothing is said twice or by reference, no type is given by a tag.

    Attributes:
        tagged: the nodes that have a tag of their own, by ``id``; never constructed, since a tag can ask for a value
            that its text is none of.
    """

    def __init__(self, text: str) -> None:
        self.tagged: set[int] = set()
        super().__init__(text)

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases are not accepted", problem_mark=event.start_mark)
        node = super().compose_node(parent, index)
        if event.tag is not None:
            self.tagged.add(id(node))
        return node


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in PLAIN_VALUES]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(text: str) -> Document:
    """The document in a text.

    Raises:
        Faulty: it is no YAML, or not a mapping of plain values.
    """
    # A lone surrogate is what a locale makes of a byte that it cannot read; the loader then tells where it stands.
    if len(text.encode(errors="surrogatepass")) > LARGEST_BYTES:
        raise Faulty([Fault(1, 1, "", f"The file has more than {LARGEST_BYTES} bytes.")])
    try:
        loader = _Loader(text)
    except ReaderError as error:
        raise Faulty([_untaken(text, error)]) from None
    try:
        node = loader.get_single_node()
        document, faults = Document(), list[Fault]()
        content = {} if node is None else _plain(loader, node, (), document, faults)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise Faulty([Fault(*place, "", f"{error.problem or error.context}.")]) from None
    except RecursionError:
        raise Faulty([Fault(1, 1, "", TOO_DEEP)]) from None
    except yaml.YAMLError as error:
        raise Faulty([Fault(*_stand(loader), "", f"This is not YAML: {error}.")]) from None
    except (ValueError, OverflowError):  # from an escape, or from the version in %YAML
        raise Faulty([Fault(*_stand(loader), "", "This number is not one that YAML knows.")]) from None
    finally:
        loader.dispose()
    if not isinstance(content, dict):
        faults.append(Fault(1, 1, "", "Expected a mapping."))
    if faults:
        raise Faulty(faults)
    document.content = content
    return document


def _stand(loader: _Loader) -> tuple[int, int]:
    """Up to where a text has been read."""
    mark = loader.get_mark()
    return mark.line + 1, mark.column + 1


def _untaken(text: str, error: ReaderError) -> Fault:
    before = text[: error.position]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return Fault(line, column, "", f"The character U+{ord(text[error.position]):04X} is not accepted.")


def _plain(loader: _Loader, node: yaml.Node, path: Path, document: Document, faults: list[Fault]) -> Any:
    place = (node.start_mark.line + 1, node.start_mark.column + 1)
    if len(path) > DEEPEST:
        raise Faulty([Fault(*place, ".".join(path[:4]), TOO_DEEP)])
    if id(node) in loader.tagged:
        faults.append(Fault(*place, ".".join(path), NO_TAGS))
        return {}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(loader, each, (*path, str(n)), document, faults) for n, each in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        if UNTAKEN.search(node.value):
            faults.append(Fault(*place, ".".join(path), UNTAKEN_SAID))
        try:
            return loader.construct_object(node)
        except (ValueError, OverflowError):  # such as 0x_, or more digits than Python reads
            faults.append(Fault(*place, ".".join(path), "This number cannot be read."))
            return None
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        at = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        # A name such as 2026 or on is text here, whatever YAML makes of it.
        name = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if id(key_node) in loader.tagged:
            faults.append(Fault(*at, ".".join(path), NO_TAGS))
            continue
        if name is None:
            faults.append(Fault(*at, ".".join(path), "Expected a name."))
            continue
        if UNTAKEN.search(name):
            faults.append(Fault(*at, ".".join(path), UNTAKEN_SAID))
            continue
        if name in found:
            faults.append(Fault(*at, ".".join((*path, name)), "Duplicate."))
        document.places[(*path, name)] = at
        found[name] = _plain(loader, value_node, (*path, name), document, faults)
    return found
