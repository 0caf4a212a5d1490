"""The header of every script says what the script takes; here it is held against the code."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from streams.log import keys, named, scripts
from streams.log.client import Log
from streams.log.group_scripts import group_script

FILES = sorted(scripts.LUA.glob("*.lua"))
OF_GROUP = sorted(
    {
        verb
        for path in scripts.LUA.parent.glob("*.py")
        for verb in re.findall(r'\bgroup_script\(\s*"(\w+)"', path.read_text())
    }
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_header_and_code_name_the_same_keys_and_arguments(path: Path) -> None:
    header: list[str] = []
    code: list[str] = []
    for line in path.read_text().splitlines():
        (header if line.startswith("--") and not code else code).append(line)
    for table in ("KEYS", "ARGV"):
        said = re.findall(rf"^-- {table}\[(\d+)\] ", "\n".join(header), re.MULTILINE)
        used = {number for line in code for number in re.findall(rf"\b{table}\[(\d+)\]", line)}
        assert used <= set(said), f"{table} used and not said"
        assert set(said) <= used, f"{table} said and not used"


@pytest.mark.parametrize("verb", OF_GROUP)
def test_a_verb_on_a_group_knows_each_key_by_the_name_that_brings_it(verb: str) -> None:
    named = scripts.keys_named(verb)
    assert set(named) <= {*keys.OF_STREAM, *keys.OF_GROUP}
    sent = group_script(verb, "stream", "its").keys
    assert [keys.OF_GROUP[name]("stream", "its") for name in named if name in keys.OF_GROUP] == [
        key for key in sent if key.endswith(":its")
    ]
    code = without_comments((scripts.LUA / f"{verb}.lua").read_text())
    bound = dict(bindings(code))
    assert {number: name.removesuffix("_key") for number, name in bound.items()} == {
        str(number): name for number, name in enumerate(named, start=1)
    }


def bindings(code: str) -> Iterator[tuple[str, str]]:
    """Number of each key that is given a name, by ``local name, … = KEYS[1], …`` or in a table, and that name."""
    for names, values in re.findall(r"^local ([\w, ]+) =\s+(.+)$", code, re.MULTILINE):
        for name, value in zip(names.split(", "), values.split(", "), strict=False):
            if number := re.fullmatch(r"KEYS\[(\d+)\]", value):
                yield number[1], name
    for table in re.findall(r"\{[^{}]+\}", code.replace("{}", "")):
        for name, number in re.findall(r"(\w+) = KEYS\[(\d+)\]", table):
            yield number, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_error_said_is_raised_and_the_other_way_round(path: Path) -> None:
    text = path.read_text()
    said = set(re.findall(r"OKMQ_[A-Z_]+", "".join(re.findall(r"^-- errors: .*$", text, re.MULTILINE))))
    raised = set(re.findall(r"'(OKMQ_[A-Z_]+)", text))
    assert said == raised


def test_every_error_of_the_scripts_has_a_name_of_its_own() -> None:
    raised = {name for path in FILES for name in re.findall(r"'(OKMQ_[A-Z_]+)", path.read_text())}
    known = set(re.findall(r'"(OKMQ_[A-Z_]+)"', Path(named.__file__).read_text()))
    assert raised == known


@pytest.mark.parametrize("verb", scripts.verbs())
def test_a_verb_that_says_it_only_reads_does_and_the_other_way_round(verb: str, redis_url: str) -> None:
    sent = set().union(*(commands(part) for part in reached(verb)))
    log = Log(redis_url)
    told = dict(zip(sorted(sent), log.client.execute_command("COMMAND", "INFO", *sorted(sent)), strict=True))
    log.close()
    changes = {name for name, info in told.items() if b"write" in info[2] or b"may_replicate" in info[2]}
    assert ("no-writes" in scripts.header(verb, "flags")) == (not changes), changes


@pytest.mark.parametrize("verb", scripts.verbs())
def test_no_verb_that_runs_on_a_full_server_stores_a_message(verb: str) -> None:
    flags = scripts.header(verb, "flags")
    assert set(flags) <= set(scripts.FLAGS)
    if "allow-oom" in flags:
        parts = reached(verb)
        # A note is as small as a line of a log, and goes as soon as the worker has read it.
        if verb != "note":
            assert "XADD" not in set().union(*map(commands, parts))
        # What is retired is in flight, which is bounded; the removal that it mostly goes before frees it.
        if verb != "retire":
            assert not any(part.startswith("local function group_bury(") for part in parts), (
                "it copies a body"
            )


@pytest.mark.parametrize("verb", scripts.verbs())
def test_a_verb_includes_what_it_uses(verb: str) -> None:
    included = {f"lib/{name}" for name in scripts.header(verb, "include")}
    own = scripts.LUA / f"{verb}.lua"
    homes = {shared()[name][0] for name in names_in(without_comments(own.read_text()))}
    assert homes <= included


@cache
def shared() -> dict[str, tuple[str, str]]:
    """Name of each function or number under lib/ → its file and its text."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted((scripts.LUA / "lib").glob("[a-z]*.lua")):
        for text in re.split(r"^(?=local )", without_comments(path.read_text()), flags=re.MULTILINE):
            for name in re.findall(r"\w+", text.split("=")[0].split("(")[0].removeprefix("local ")):
                if name != "function":
                    found[name] = (f"lib/{path.stem}", text)
    return found


def names_in(text: str) -> Iterator[str]:
    return (name for name in set(re.findall(r"(?<![.\w])[A-Za-z_]+\b", text)) if name in shared())


def reached(verb: str) -> list[str]:
    """The text of a verb and of every shared function that it may call, directly or by way of another."""
    open_texts, seen, found = [without_comments((scripts.LUA / f"{verb}.lua").read_text())], set[str](), []
    while open_texts:
        text = open_texts.pop()
        found.append(text)
        for name in names_in(text):
            if name not in seen:
                seen.add(name)
                open_texts.append(shared()[name][1])
    return found


def commands(text: str) -> set[str]:
    return set(re.findall(r"redis\.call\('(\w+)'", text))


def without_comments(text: str) -> str:
    return re.sub(r"--.*$", "", text, flags=re.MULTILINE)
