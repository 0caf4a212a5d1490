"""What people publish is text on every page: it runs nothing, loads nothing, hides nothing."""

import json

import httpx
import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.e2e, pytest.mark.running]

HOSTILE = [
    "<script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "<svg onload=window.pwned=1><script>window.pwned=1</script></svg>",
    "</script><script>window.pwned = 1</script>",
    "</code></pre><iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "\"><a href='javascript:window.pwned=1' autofocus onfocus='window.pwned=1'>x</a>",
    "<style>body{display:none}</style><link rel=stylesheet href=//outside.invalid/x.css>",
    "<base href=//outside.invalid/><form action=//outside.invalid><input name=q>",
    "<div hx-get='/streams/' hx-trigger='load' hx-on::load='window.pwned=1'>x</div>",
    "<p data-live='overview' data-field='messages'>x</p>",
    "{{ request.user.password }}{% debug %}",
    "\u202egnp.exe\u2066 \u200b\ufeff",
    '=HYPERLINK("//outside.invalid","x")',
    "x" * 10_000,
    "\u0000\u0001\u001b[31m\r\n\t",
    "😀 é ڈ 漢字 " + "a\u0301" * 200,
]


@pytest.fixture
def hostile(api: httpx.Client, stream: str) -> str:
    """A stream with hostile bodies, names, keys, headers and ids."""
    for number, text in enumerate(HOSTILE):
        message = {
            "id": f"{number}{text[:30]}",
            "key": "<b.'\"&amp;.<img/src=x",
            "body": {text: [text]},
            "headers": {"<i>h</i>": text[:200]},
        }
        answer = api.post(f"/streams/{stream}/messages", content=json.dumps(message))
        if answer.status_code == 400:  # an id that the contract refuses; the body is what counts
            answer = api.post(
                f"/streams/{stream}/messages", content=json.dumps({**message, "id": f"m{number}"})
            )
        answer.raise_for_status()
    lone = b'{"id": "lone", "body": "half a character: \\ud800"}'
    api.post(f"/streams/{stream}/messages", content=lone).raise_for_status()
    description = "<img src=x onerror=window.pwned=1>\u202e"
    api.patch(
        f"/streams/{stream}", json={"description": description, "labels": {"a": "<b>b</b>"}}
    ).raise_for_status()
    return stream


def test_the_list_of_messages_stays_inert(page: Page, hostile: str) -> None:
    page.goto(f"/streams/{hostile}/?start=oldest")
    expect(page.locator("[data-rows] tbody tr")).to_have_count(len(HOSTILE) + 1)
    for number in range(1, len(HOSTILE) + 2):
        page.locator(f'a[data-open][href$="/messages/{number}/"]').click()
        expect(page.locator(".detail")).to_have_count(number)
    inert(page)
    assert (
        page.locator(".detail script, .detail iframe, .detail img, .detail form, .detail style").count() == 0
    )
    assert (
        page.locator(".detail [onerror], .detail [onload], .detail [hx-get], .detail [data-live]").count()
        == 0
    )


@pytest.mark.parametrize(
    "tab",
    [
        *("", "publish/", "publish/?like=2", "history/", "settings/", "tail/", "messages/1/", "messages/12/"),
        *("messages/2/delete/", "?start=oldest&match=%3Cscript%3E", "?match=%3Cscript%3E%22%27&key=%3Cimg"),
    ],
)
def test_each_tab_stays_inert(page: Page, hostile: str, tab: str) -> None:
    page.goto(f"/streams/{hostile}/{tab}")
    inert(page)


def test_the_overview_stays_inert(page: Page, hostile: str) -> None:
    page.reload()
    inert(page)


def test_a_raw_body_is_shown_as_text(page: Page, hostile: str) -> None:
    answer = page.goto(f"/streams/{hostile}/messages/1/raw/")
    assert answer is not None
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    inert(page)


def test_a_search_for_markup_is_text(page: Page) -> None:
    page.goto("/streams/?name=%3Cscript%3Ewindow.pwned=1%3C/script%3E")
    expect(page.get_by_text("No stream matches")).to_be_visible()
    inert(page)


def inert(page: Page) -> None:
    """Nothing ran; that nothing was refused or asked elsewhere is seen by ``watched`` at the end."""
    assert page.evaluate("window.pwned") is None
