"""The console's pages where there is much: how long the server takes for each, and what a first look at one loads."""

import gzip
import http.client
import http.cookiejar
import re
import statistics
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass, field

from bench.measure import Figure
from bench.product import Product
from bench.store_load import fill

STREAMS = 10_000
GROUPS = 1_000
MESSAGES = 1_000_000
KEYS = 1_000
LOOKS = 9
ANSWERED_MS = 300
FIRST_LOAD_KB = 150

PAGES = (
    "/",
    "/streams/",
    "/streams/?sort=-messages&size=100",
    "/streams/?sort=-status",
    "/streams/?name=bench",
    "/streams/?name=^bench.*[0-9]$&regex=1",
    "/groups/",
    "/groups/?sort=-status",
    "/groups/_export/?sort=-time",
    "/streams/_new/",
    "/streams/_bulk/?do=purge&stream={stream}",
    "/streams/_bulk/?do=label&stream={stream}",
    "/streams/{stream}/",
    "/streams/{stream}/?start=time&at=1+min+ago",
    "/streams/{stream}/?start=oldest",
    "/streams/{stream}/?start=offset&at={middle}",
    "/streams/{stream}/?start=id&at={middle:015d}",
    "/streams/{stream}/?key=key.7",
    "/streams/{stream}/?key=no.such.key",
    "/streams/{stream}/?match=no-such-text",
    "/streams/{stream}/?cols=.n,.text,.items[*]",
    "/streams/{stream}/messages/{middle}/",
    "/streams/{stream}/messages/{middle}/delete/",
    "/streams/{stream}/purge/",
    "/streams/{stream}/purge/?what=newest&at={middle}",
    "/streams/{stream}/removals/{removed}/end/",
    "/streams/{stream}/tail/",
    "/tail/?streams=*",
    "/streams/{stream}/publish/",
    "/streams/{stream}/publish/many/",
    "/streams/{stream}/rates/",
    "/streams/{stream}/rates/?range=6h",
    "/streams/{stream}/retention/",
    "/streams/{stream}/retention/?max_messages=1000",
    "/streams/{stream}/history/",
    "/streams/{stream}/history/?range=30d",
    "/streams/{stream}/history/erasures/?what=offset&at={middle}",
    "/streams/{stream}/activity/",
    "/streams/{stream}/settings/",
    "/streams/{stream}/settings/?delete=1",
    "/streams/{stream}/groups/",
    "/streams/{stream}/groups/?sort=-status",
    "/streams/{stream}/groups/{group}/",
    "/streams/{stream}/groups/{group}/?position=offset&at={middle}",
    "/streams/{stream}/groups/{group}/?range=6h",
    "/streams/{stream}/groups/{group}/activity/",
    "/streams/{stream}/groups/{group}/pending/",
    "/streams/{stream}/groups/{group}/pending/settle/?what=ack&scope=all",
    "/streams/{stream}/groups/{group}/dead-letters/",
    "/streams/{stream}/groups/{group}/dead-letters/?order=newest",
    "/streams/{stream}/groups/{group}/dead-letters/{letter}/",
    "/streams/{stream}/groups/{group}/settings/",
    "/streams/{stream}/groups/{group}/settings/?delete=1",
    "/events/",
    "/alerts/",
    "/alerts/{rule}/",
    "/alerts/{rule}/delete/",
    "/sql/",
    "/search/?q=bench",
    "/search/?q=bench+pub",
    "/settings/tokens/",
    "/settings/people/",
    "/settings/people/{person}/remove/",
    "/settings/people/{person}/password/",
    "/settings/workspaces/",
    "/settings/workspaces/default/",
    "/settings/configuration/",
    "/settings/system/",
    "/profile/",
    "/profile/password/",
)
LOGIN = "/login/?next=/"
WITH_ALL_COLUMNS = "/streams/?sort=-messages&size=100"
COLUMN = re.compile(r'name="column" value="(\w+)"')
ASSET = re.compile(r'(?:src|href)="(/static/[^"]+)"')
IMPORT = re.compile(r'(?:from|import)\s*"(\.{1,2}/[^"]+)"')


@dataclass
class Browser:
    """Somebody who is logged in; what was loaded once is kept, as a browser does."""

    ours: Product
    assets: dict[str, tuple[bytes, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        self.get("/login/")
        self._jar = jar
        self.post("/login/", {"username": "admin", "password": self.ours.password})
        self.cookie = "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)

    def get(self, path: str) -> tuple[bytes, int]:
        """A body, and how many bytes it was on the wire."""
        with self._open(path) as answer:
            sent = answer.read()
            packed = answer.headers.get("Content-Encoding") == "gzip"
        return (gzip.decompress(sent) if packed else sent), len(sent)

    def post(self, path: str, form: dict[str, str | list[str]]) -> None:
        """Send a form, as one of our pages would."""
        token = next(str(cookie.value) for cookie in self._jar if "csrf" in cookie.name)
        filled = urllib.parse.urlencode({**form, "csrfmiddlewaretoken": token}, doseq=True)
        self._open(path, filled.encode()).close()

    def choose_all_columns(self) -> int:
        """Show all columns of the list of streams from now on; how many there are."""
        columns = COLUMN.findall(self.get("/streams/")[0].decode())
        self.post("/streams/_columns/", {"column": columns})
        return len(columns)

    def answer_ms(self, path: str) -> float:
        """How long a page takes, the median of some looks by one who looked at it before."""
        self.get(path)
        took_s = []
        for _ in range(LOOKS):
            began = time.perf_counter()
            self.get(path)
            took_s.append(time.perf_counter() - began)
        return statistics.median(took_s) * 1e3

    def first_load(self, path: str) -> int:
        """The bytes of a page with all that it loads, by one who was never here."""
        page, size = self.get(path)
        wanted, seen = ASSET.findall(page.decode()), set[str]()
        while wanted:
            name = wanted.pop()
            if name in seen:
                continue
            seen.add(name)
            if name not in self.assets:
                self.assets[name] = self.get(name)
            body, on_the_wire = self.assets[name]
            size += on_the_wire
            if name.endswith(".js"):
                wanted += [urllib.parse.urljoin(name, other) for other in IMPORT.findall(body.decode())]
        return size

    def _open(self, path: str, data: bytes | None = None) -> http.client.HTTPResponse:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ours.port}{path}", data=data, headers={"Accept-Encoding": "gzip"}
        )
        answer: http.client.HTTPResponse = self._opener.open(request, timeout=60)
        return answer


def pages(ours: Product, *, messages: int = MESSAGES) -> list[Figure]:
    """Every page of a stream with all the messages and all the groups, among many streams."""
    made = [stream for _ in range(0, STREAMS, 1000) for stream in ours.streams(1000)]
    stream, stream_id = made[0]
    fill(ours.keeper_url, stream_id, messages=messages, keys=KEYS)
    for number in range(GROUPS):
        ours.ask("POST", f"/streams/{stream}/groups/", {"name": f"group-{number:04d}"})
    browser = Browser(ours)
    names = _shown(ours, stream, messages=messages)
    figures = [_answered(f"page {page}", browser.answer_ms(page.format(**names))) for page in PAGES]
    columns = browser.choose_all_columns()
    figures.append(
        _answered(f"page {WITH_ALL_COLUMNS}, with all {columns} columns", browser.answer_ms(WITH_ALL_COLUMNS))
    )
    sizes = {page: browser.first_load(page.format(**names)) for page in PAGES}
    browser.post("/logout/", {})  # who is logged in is sent on from there
    figures.append(_answered(f"page {LOGIN}", browser.answer_ms(LOGIN)))
    heaviest = max(sizes, key=lambda page: sizes[page])
    return [
        *figures,
        Figure(
            name=f"first load of the heaviest page, {heaviest}",
            reached=sizes[heaviest] / 1024,
            unit="KiB",
            at_most=FIRST_LOAD_KB,
        ),
    ]


def _shown(ours: Product, stream: str, *, messages: int) -> dict[str, str | int]:
    """What the addresses of ``PAGES`` name: some of it is made for that."""
    group, letter = "group-0000", 7
    at = f"/streams/{stream}/groups/{group}"
    ours.ask("POST", f"{at}/fetch", {"limit": 1000, "wait": 0})
    ours.ask("POST", f"{at}/term", {"offsets": [letter], "reason": "no price"})
    ours.ask("DELETE", f"/streams/{stream}/messages/{messages - 1}?undo=true")
    rule = {"name": "lags", "stream": stream, "watch": "lag", "limit": 10 * messages, "for_seconds": 0}
    ours.ask("POST", "/alerts/rules/", rule)
    return {
        "stream": stream,
        "group": group,
        "middle": messages // 2,
        "removed": 1,
        "letter": letter,
        "rule": "lags",
        "person": "admin",
    }


def _answered(name: str, reached_ms: float) -> Figure:
    return Figure(name=name, reached=reached_ms, unit="ms", at_most=ANSWERED_MS)
