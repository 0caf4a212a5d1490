"""Whatever a text is, it is read or refused in sentences that say where."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams.api.declared.reading import Fault, Faulty, read

NUMBER = "This number cannot be read."


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a:\n  b: !!timestamp nope", "2:6: a.b: Tags are not accepted."),
        ("a:\n  b: !!timestamp 2020-01-01", "2:6: a.b: Tags are not accepted."),
        ("a:\n  b: !!bool maybe", "2:6: a.b: Tags are not accepted."),
        ("a:\n  b: !!int x", "2:6: a.b: Tags are not accepted."),
        ("a:\n  b: !!binary aGVsbG8=", "2:6: a.b: Tags are not accepted."),
        ("a:\n  b: !!str 5", "2:6: a.b: Tags are not accepted."),
        ("a:\n  b: ! 5", "2:6: a.b: Tags are not accepted."),
        ("a: !!set {b, c}", "1:4: a: Tags are not accepted."),
        ("a:\n  !!bool b: 5", "2:3: a: Tags are not accepted."),
        ("a:\n  b: 0x_", f"2:6: a.b: {NUMBER}"),
        ("a:\n  b: " + "9" * 5000, f"2:6: a.b: {NUMBER}"),
        ("a:\n  b: 1" + ":59" * 400 + ".5", f"2:6: a.b: {NUMBER}"),
        ('a:\n  b: "\\UFFFFFFFF"', "2:9: This number is not one that YAML knows."),
        ('a:\n  b: "\\U00110000"', "2:9: This number is not one that YAML knows."),
        ("%YAML " + "9" * 5000 + ".1\n---\na: 1", "1:7: This number is not one that YAML knows."),
        ("%TAG ! tag:x,2000:\n---\na: !b 1", "3:4: a: Tags are not accepted."),
    ],
)
def test_what_cannot_be_read_says_where(text: str, fault: str) -> None:
    with pytest.raises(Faulty) as refused:
        read(text)
    (found,) = refused.value.faults
    assert str(found).startswith(fault)


def test_what_looks_like_more_than_json_is_text() -> None:
    found = read("a: [=, <<, 2020-01-01, .5, ~, yes, 0x10, 1:30]").content
    assert found == {"a": ["=", "<<", "2020-01-01", 0.5, None, True, 16, 90]}


TAGS = ("bool", "int", "float", "null", "timestamp", "binary", "str", "set", "omap", "pairs", "map", "seq")
PIECES = st.sampled_from(
    [
        *(f"!!{tag} " for tag in TAGS),
        *("!", "! ", "!x!y ", "!<tag:a> ", "%YAML 1.1\n", "%TAG ! a:\n", "---\n", "...\n", "? ", ": ", "- "),
        *(
            "\n",
            "\n  ",
            "\n    ",
            " ",
            "\t",
            ",",
            "[",
            "]",
            "{",
            "}",
            "'",
            '"',
            "|",
            ">-\n",
            "#",
            "&a ",
            "*a",
        ),
        *(
            "<<",
            "=",
            "~",
            "a",
            "b",
            "0",
            "9",
            "-",
            "+",
            ".",
            "_",
            "0x",
            "0b",
            "0o",
            "e",
            ".inf",
            ".nan",
            ":59",
        ),
        *(
            "yes",
            "true",
            "2020-01-01",
            "T00:00:00Z",
            "\\U",
            "\\u",
            "\\x",
            "\\",
            "FFFFFFFF",
            "D800",
            "%41",
            "\x85",
        ),
    ]
)
YAMLISH = st.lists(PIECES | st.text(max_size=2), max_size=30).map("".join)


@settings(max_examples=1500)
@example('a: "\\UFFFFFFFF"')
@given(text=YAMLISH | YAMLISH.map("a: {}".format) | YAMLISH.map('a: "{}"'.format))
def test_whatever_a_text_is_it_is_read_or_refused(text: str) -> None:
    faults: list[Fault] = []
    try:
        read(text)
    except Faulty as refused:
        faults = refused.faults or [Fault(0, 0, "", "")]
    assert all(fault.line > 0 and fault.column > 0 and fault.sentence for fault in faults)
