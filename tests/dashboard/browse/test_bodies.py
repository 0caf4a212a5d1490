"""Bodies are shown with every digit, and nothing in them can act on the page."""

import pytest
from django.utils.html import strip_tags

from dashboard.browse.bodies import laid_out, preview, raw, visible


def plain(body: str) -> str:
    return strip_tags(str(laid_out(body.encode()).html)).replace("&quot;", '"')


@pytest.mark.parametrize(
    "number",
    [
        "9007199254740993",
        "123456789012345678901234567890",
        "1.0",
        "1e400",
        "-0",
        "1.50",
    ],
)
def test_a_number_keeps_its_digits(number: str) -> None:
    assert plain(f'{{"n":{number}}}') == f'{{\n  "n": {number}\n}}'


def test_a_name_that_stands_twice_is_shown_twice() -> None:
    assert plain('{"a":1,"a":2}') == '{\n  "a": 1,\n  "a": 2\n}'


def test_empty_containers_stay_on_one_line() -> None:
    assert plain('{"a":[],"b":{}}') == '{\n  "a": [],\n  "b": {}\n}'


def test_punctuation_inside_strings_is_text() -> None:
    assert plain('["a,b:{}[]"]') == '[\n  "a,b:{}[]"\n]'


def test_markup_in_a_body_is_escaped() -> None:
    html = str(laid_out(b'"<script>alert(1)</script>"').html)
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_markup_in_a_name_is_escaped() -> None:
    assert "<img" not in str(laid_out(b'{"<img src=x onerror=alert(1)>":1}').html)


def test_escaped_letters_are_shown_as_letters() -> None:
    assert plain('"caf\\u00e9"') == '"café"'


def test_an_escaped_quote_stays_escaped() -> None:
    assert plain('"a\\u0022b\\\\u"') == '"a\\"b\\\\u"'


def test_a_lone_surrogate_keeps_its_escape() -> None:
    assert plain('"\\ud800"') == '"\\ud800"'


def test_an_override_of_direction_is_shown_as_its_escape() -> None:
    assert visible("a\u202eb") == "a\\u202eb"


def test_deep_nesting_is_laid_out_without_recursion() -> None:
    assert plain("[" * 128 + "]" * 128).count("[") == 128


def test_a_long_body_says_how_much_of_it_is_shown() -> None:
    layout = laid_out(b'"' + b"x" * 200_000 + b'"')
    assert (layout.shown, layout.total, layout.complete) == (64 * 1024, 200_002, False)


def test_a_body_cut_in_the_middle_of_a_string_still_shows_its_rest() -> None:
    assert "xxx" in str(laid_out(b'{"a":"' + b"x" * 100 + b'"}', limit=50).html)


def test_a_preview_is_one_short_line() -> None:
    line = preview(b'{\n  "a": "' + b"x" * 1000 + b'"}')
    assert "\n" not in line
    assert line.startswith('{ "a": "xxx')
    assert line.endswith("…")


def test_raw_keeps_the_lines_as_sent() -> None:
    assert raw(b'{\n"a": 1.0}') == '{\n"a": 1.0}'


def test_a_cut_off_string_of_escaped_quotes_takes_no_quadratic_time() -> None:
    assert str(laid_out(b'"' + b'\\"' * 100_000).html).count("&quot;") == 32_768
