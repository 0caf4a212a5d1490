"""What the running product tells of the requests that it serves."""

import json
import re
import secrets
import socket
import time
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from tests.product import Product
from tests.waiting import until

pytestmark = pytest.mark.running


def line_of(product: Product, request_id: str) -> dict[str, Any]:
    """The access log's line of a request, as soon as it is there."""
    path = product.data_dir / "log" / "access.log"

    def found() -> dict[str, Any]:
        text = path.read_text() if path.exists() else ""
        return next((json.loads(line) for line in text.splitlines() if request_id in line), {})

    return until(found, what=f"a line of {request_id}")


def exchanged(product: Product, sent: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """The head of an answer to what is sent as it is, ``status`` among its fields, and the error in it."""
    with socket.create_connection(("127.0.0.1", product.port), timeout=10) as connection:
        connection.sendall(sent)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    top, _, body = answer.partition(b"\r\n\r\n")
    first, *fields = top.decode().split("\r\n")
    head = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
    return {"status": first.split()[1]} | head, json.loads(body)["error"]


@pytest.fixture
def request_id() -> str:
    return f"asked-{secrets.token_hex(6)}"


@pytest.fixture
def stream(running: Product, unique: str) -> str:
    with running.client() as client:
        assert client.post("/streams/", json={"name": unique}).status_code == 201
    return unique


def test_the_data_plane_tells_a_line_without_the_query(
    running: Product, stream: str, request_id: str
) -> None:
    body = b'{"id": "a", "body": 1}'
    with running.client() as client:
        answer = client.post(
            f"/streams/{stream}/messages?secret=hush", content=body, headers={"x-request-id": request_id}
        )
    line = line_of(running, request_id)
    assert line["route"] == "/api/v1/streams/{name}/messages"
    assert line["path"] == f"/api/v1/streams/{stream}/messages"
    assert (line["method"], line["status"], line["bytes_out"]) == ("POST", 400, len(answer.content))
    assert (line["workspace"], type(line["token"]), line["address"]) == ("default", int, "127.0.0.1")
    assert "hush" not in json.dumps(line)
    assert running.token not in json.dumps(line)


def test_the_control_plane_is_told_alike(running: Product, stream: str, request_id: str) -> None:
    body = b'{"ttl": 60}'
    with running.client() as client:
        answer = client.patch(f"/streams/{stream}", content=body, headers={"x-request-id": request_id})
    line = line_of(running, request_id)
    assert (line["route"], line["method"], line["status"]) == ("/api/v1/streams/{name}", "PATCH", 200)
    assert (line["bytes_in"], line["bytes_out"]) == (len(body), len(answer.content))
    assert (line["workspace"], type(line["token"])) == ("default", int)


@pytest.mark.parametrize(
    ("path", "route", "status"),
    [
        ("/api/v1/nothing/here", "unknown", 404),
        ("/wp-login.php", "unknown", 404),
        ("/healthz", "/healthz", 200),
        ("/streams/x/", "/streams/{name}/", 302),
        ("/static/js/live.js", "/static/{path}", 200),
    ],
)
def test_routes_are_few_whatever_is_asked(
    running: Product, request_id: str, path: str, route: str, status: int
) -> None:
    httpx.get(f"{running.url}{path}", headers={"x-request-id": request_id})
    line = line_of(running, request_id)
    assert (line["route"], line["status"], line["token"]) == (route, status, None)


def log_in(product: Product, browser: httpx.Client) -> None:
    browser.get("/login/")
    form = {
        "username": "admin",
        "password": product.password,
        "csrfmiddlewaretoken": browser.cookies["csrftoken"],
    }
    browser.post("/login/", data=form, headers={"Referer": f"{product.url}/login/"}).raise_for_status()


def test_a_person_is_named(running: Product, request_id: str) -> None:
    with httpx.Client(base_url=running.url, follow_redirects=True) as browser:
        log_in(running, browser)
        browser.get("/streams/", headers={"x-request-id": request_id})
    line = line_of(running, request_id)
    assert (line["user"], line["workspace"], line["route"]) == ("admin", "default", "/streams/")


def test_a_client_that_goes_away_is_a_line_too(running: Product, stream: str, request_id: str) -> None:
    patience = httpx.Timeout(30, read=0.3)
    with running.client() as client, pytest.raises(httpx.ReadTimeout):
        client.get(
            f"/streams/{stream}/messages?wait=30", headers={"x-request-id": request_id}, timeout=patience
        )
    assert line_of(running, request_id)["status"] == 499


def test_a_socket_that_is_refused_is_a_line(running: Product, request_id: str) -> None:
    url = running.url.replace("http", "ws")
    with pytest.raises(Exception, match="403"):
        connect(f"{url}/live/", additional_headers={"x-request-id": request_id, "origin": "http://evil"})
    line = line_of(running, request_id)
    assert (line["route"], line["status"]) == ("/live/", 403)
    written = "".join(path.read_text() for path in (running.data_dir / "log").glob("web*.log"))
    assert "handshake" not in written


def test_requests_of_both_planes_are_counted(running: Product, stream: str) -> None:
    def counted(route: str, method: str, status: int) -> int:
        text = httpx.get(f"{running.url}/metrics", headers={"authorization": running.token}).text
        labels = f'method="{method}",route="/api/v1/{route}",status="{status}"'
        found = re.search(rf"okmq_http_request_seconds_count{{{re.escape(labels)}}} (\d+)", text)
        return int(found[1]) if found else 0

    before = counted("streams/{name}/messages", "POST", 201), counted("streams/{name}", "GET", 404)
    with running.client() as client:
        client.post(f"/streams/{stream}/messages", json={"id": "a", "body": 1})
        client.get("/streams/nothing-of-this-name")
    until(lambda: counted("streams/{name}/messages", "POST", 201) > before[0])
    until(lambda: counted("streams/{name}", "GET", 404) > before[1])


def test_every_process_is_told(running: Product) -> None:
    text = httpx.get(f"{running.url}/metrics", headers={"authorization": running.token}).text
    for name in ("web", "worker", "valkey"):
        assert f'okmq_process_up{{process="{name}"}} 1' in text
        memory = re.search(rf'okmq_process_resident_memory_bytes{{process="{name}"}} (\d+)', text)
        assert memory
        assert int(memory[1]) > 1_000_000


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"BREW / HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx: a\x00b\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_in_the_one_shape_and_a_line(running: Product, sent: bytes) -> None:
    head, error = exchanged(running, sent)
    assert head["status"] == "400"
    assert list(error) == ["code", "message", "details"]
    line = line_of(running, head["x-request-id"])
    assert (line["status"], line["route"], line["method"], line["path"]) == (400, "unknown", "", "")
    said = (running.data_dir / "log" / "web.log").read_text().splitlines()
    assert [each for each in said if not each.startswith("{")] == []
    assert "uvicorn.error" in {json.loads(each)["logger"] for each in said}  # the server's own lines, as ours


@pytest.mark.parametrize("path", ["streams/{name}/messages", "streams"])
def test_a_body_that_is_not_http_is_refused_and_one_line(
    running: Product, stream: str, request_id: str, path: str
) -> None:
    """In both planes: by the request's own answer, with its own id."""
    wanted = path.replace("{name}", stream)
    sent = (
        f"POST /api/v1/{wanted} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: {running.token}\r\n"
        f"x-request-id: {request_id}\r\ntransfer-encoding: chunked\r\n\r\n1\r\n[\r\nzz\r\n"
    )
    head, error = exchanged(running, sent.encode())
    assert (head["status"], head["connection"], head["x-request-id"]) == ("400", "close", request_id)
    assert error["code"] == "validation_error"
    line = line_of(running, request_id)
    assert (line["status"], line["route"]) == (400, f"/api/v1/{path}")
    log = (running.data_dir / "log" / "access.log").read_text()
    assert log.count(request_id) == 1


def test_a_page_is_not_given_half_a_form(running: Product) -> None:
    sent = b"POST /login/ HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n"
    head, error = exchanged(running, sent)
    assert (head["status"], error["code"]) == ("400", "validation_error")


HANDSHAKE = {
    "host": "127.0.0.1",
    "connection": "upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.mark.parametrize(
    ("method", "changed", "status"),
    [
        ("GET", {"sec-websocket-key": "short"}, "400"),
        ("GET", {"sec-websocket-version": "99"}, "400"),
        ("POST", {}, "405"),
        ("GET", {"origin": "http://evil.example"}, "403"),
    ],
)
def test_a_handshake_that_fails_is_refused_in_the_one_shape_and_a_line(
    running: Product, method: str, changed: dict[str, str], status: str
) -> None:
    fields = "".join(f"{name}: {value}\r\n" for name, value in (HANDSHAKE | changed).items())
    head, error = exchanged(running, f"{method} /live/ HTTP/1.1\r\n{fields}\r\n".encode())
    assert (head["status"], list(error)) == (status, ["code", "message", "details"])
    line = line_of(running, head["x-request-id"])
    assert (line["status"], line["route"], line["method"]) == (int(status), "/live/", method)


def test_a_token_is_no_request_id(running: Product) -> None:
    answer = httpx.get(f"{running.url}/healthz", headers={"x-request-id": "okmq_in_the_wrong_header"})
    assert line_of(running, answer.headers["x-request-id"])["path"] == "/healthz"
    assert "wrong_header" not in (running.data_dir / "log" / "access.log").read_text()


def test_a_socket_that_is_opened_is_a_line(running: Product, request_id: str) -> None:
    with httpx.Client(base_url=running.url, follow_redirects=True) as browser:
        log_in(running, browser)
        cookie = f"sessionid={browser.cookies['sessionid']}"
    headers = {"x-request-id": request_id, "origin": running.url, "cookie": cookie}
    with connect(f"{running.url.replace('http', 'ws')}/live/", additional_headers=headers) as opened:
        line = line_of(running, request_id)
        assert opened.response is not None
        assert opened.response.headers["x-request-id"] == request_id
    assert (line["method"], line["route"], line["status"]) == ("GET", "/live/", 101)


def test_both_planes_count_into_one_share(running: Product, unique: str) -> None:
    with running.client() as ruler:
        ruler.post("/workspaces/", json={"name": unique, "rate_limit": 1, "rate_burst": 4})
        made = ruler.post("/tokens/", json={"name": "slow", "scopes": ["admin"], "workspace": unique})
    began = time.monotonic()
    with running.client(token=made.json()["token"]) as slow:
        left = [
            int(answer.headers["x-ratelimit-remaining"])
            for answer in (
                slow.post("/streams/", json={"name": "orders"}),
                slow.post("/streams/orders/messages", json={"id": "a", "body": 1}),
                slow.get("/streams/orders"),
            )
        ]
    came_back = int(time.monotonic() - began) + 1
    for have, alone in zip(left, (3, 2, 1), strict=True):
        assert alone <= have < alone + came_back


def test_a_changed_limit_acts_within_two_seconds(running: Product, unique: str) -> None:
    with running.client() as ruler:
        ruler.post("/workspaces/", json={"name": unique})
        made = ruler.post("/tokens/", json={"name": "fast", "scopes": ["admin"], "workspace": unique})
        with running.client(token=made.json()["token"]) as client:
            client.post("/streams/", json={"name": "orders"})
            path = "/streams/orders/messages?wait=0"
            assert "x-ratelimit-limit" not in client.get(path).headers
            ruler.patch(f"/workspaces/{unique}", json={"rate_limit": 1000})
            until(lambda: client.get(path).headers.get("x-ratelimit-limit") == "1000", within_s=2)
