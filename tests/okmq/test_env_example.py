"""``.env.example`` names every variable that is read, and shows the defaults."""

import re

from okmq import env

EXAMPLE = env.PROJECT / ".env.example"


def shown() -> dict[str, str]:
    return dict(re.findall(r"^#(OKMQ_[A-Z_]+)=(.*)$", EXAMPLE.read_text(), re.MULTILINE))


def test_it_names_exactly_what_is_read() -> None:
    read = set(re.findall(r'"(OKMQ_[A-Z_]+)"', (env.PROJECT / "okmq" / "env.py").read_text()))
    assert set(shown()) == read


def test_what_it_shows_is_the_default() -> None:
    folders = {
        "OKMQ_DATA_DIR": str(env.PROJECT / "var"),
        "OKMQ_HISTORY_URL": str(env.PROJECT / "var" / "history"),
    }
    assert env.load({**shown(), **folders}, dotenv=None) == env.load({}, dotenv=None)
