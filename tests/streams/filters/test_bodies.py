"""What a person looks for in a body."""

import pytest

from streams.filters.bodies import body_test

BODY = (
    b'{"id": 9007199254740993, "total": 1.0, "big": 123456789012345678901234567890, "paid": true, "note": null,'
    b' "name": "Zo\\u00eb", "said": "\\"no\\"", "items": [{"sku": "SKU-4"}, {"sku": "SKU-7"}],'
    b' "odd name": {"x": [1, 2]}}'
)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("SKU-7", True),
        ("sku-7", False),
        ("Zoë", True),
        ('"no"', True),
        (".id = 9007199254740993", True),
        (".id = 9007199254740992", False),
        (".total = 1", True),
        (".total >= 1.0", True),
        (".total > 1", False),
        (".big = 123456789012345678901234567890", True),
        (".big = 123456789012345678901234567891", False),
        (".paid = true", True),
        (".paid = 1", False),
        (".note = null", True),
        (".note", True),
        (".missing", False),
        (".missing = null", False),
        (".name = Zoë", True),
        ('.name = "Zoë"', True),
        (".name != Zoë", False),
        (".name ~ Zo", True),
        (".items[*].sku = SKU-7", True),
        (".items[0].sku = SKU-7", False),
        (".items[9].sku = SKU-7", False),
        ("$.items[1].sku=SKU-7", True),
        ('["odd name"].x[1] = 2', True),
        ('.["odd name"].x = [1, 2]', True),
        (".name > 5", False),
        ('.name > "Zo"', True),
        ('.name > "a"', False),
        (".name ~ =5", False),
        ('.said ~ "no', True),
        (".id < 5e400", True),
    ],
)
def test_a_filter_says_what_passes(text: str, passes: bool) -> None:
    assert body_test(text)(BODY) is passes


def test_a_dot_is_the_body_itself() -> None:
    assert body_test(". = 5")(b"5")
    assert body_test(".[1] = 5")(b"[4, 5]")
    assert not body_test(". = 5")(b'"5"')


@pytest.mark.parametrize("body", [b"1" * 5000, b'{"a": 1e99999999999999999999}', b'{"a": "\\ud800"}', b"[]"])
def test_a_body_that_is_odd_only_does_not_match(body: bytes) -> None:
    assert not body_test(".a = 1")(body)


@pytest.mark.parametrize("text", ["..a", ".a =", ".a b", '["a', ".a < true", ".a[x] = 1", ".[*"])
def test_a_filter_that_cannot_be_read_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"^[A-Z\[\"].*\.$"):
        body_test(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (".total >> 5", "“>>” is no comparison"),
        (".total => 5", "“=>” is no comparison"),
        (".total ~= 5", "“~=” is no comparison"),
        (".total > > 5", "a number or text in quotes"),
        (".total > abc", "a number or text in quotes"),
        (".total <= 5,5", "a number or text in quotes"),
        ('.total >= "5', "a number or text in quotes"),
        ('.name = "Zo', "is not a quoted string"),
    ],
)
def test_what_would_silently_match_nothing_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        body_test(text)
