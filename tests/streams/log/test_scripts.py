"""The header of every script says what the script takes; here it is held against the code."""

import re
from pathlib import Path

import pytest

from streams.log import client, scripts

FILES = sorted(scripts.LUA.glob("*.lua"))


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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_error_said_is_raised_and_the_other_way_round(path: Path) -> None:
    text = path.read_text()
    said = set(re.findall(r"OKMQ_[A-Z_]+", "".join(re.findall(r"^-- errors: .*$", text, re.MULTILINE))))
    raised = set(re.findall(r"'(OKMQ_[A-Z_]+)", text))
    assert said == raised


def test_every_error_of_the_scripts_has_a_name_of_its_own() -> None:
    raised = {name for path in FILES for name in re.findall(r"'(OKMQ_[A-Z_]+)", path.read_text())}
    known = set(re.findall(r'"(OKMQ_[A-Z_]+)"', Path(client.__file__).read_text()))
    assert raised == known
