"""`make audit` knows of each locked release whether it is vulnerable, or says that it was not told."""

import json
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from okmq.env import PROJECT

FILES = [{"yanked": False}]
FOUND = {"id": "PYSEC-2026-1", "aliases": ["CVE-2026-1", "GHSA-1"], "fixed_in": ["1.2"], "details": "Bad."}
SAME = {"id": "GHSA-1", "aliases": ["CVE-2026-1", "PYSEC-2026-1"], "fixed_in": ["1.2"], "details": "Bad."}
WITHDRAWN = {
    "id": "PYSEC-2026-2",
    "aliases": [],
    "fixed_in": [],
    "details": "Not so bad.",
    "withdrawn": "2026-11-01T00:00:00Z",
}


def page(
    newest: str, *vulnerabilities: dict[str, Any], releases: tuple[str, ...] = (), python: str = ""
) -> Any:
    """A page of a release, or of the project of which that is the newest release."""
    return {
        "info": {"version": newest, "requires_python": python},
        "releases": dict.fromkeys((newest, *releases), FILES) | {"1.9.9": [{"yanked": True}], "odd": FILES},
        "vulnerabilities": list(vulnerabilities),
    }


class Index(ThreadingHTTPServer):
    """Plays pypi.org to whoever takes it for a proxy: any path that it has no page for is not found."""

    def __init__(self, certificate: Path) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.pages: dict[str, Any] = {}
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Asked(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Index

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        with self.server.tls.wrap_socket(self.connection, server_side=True) as secured:
            Asked(secured, self.client_address, self.server)  # answers until the connection ends

    def do_GET(self) -> None:
        found = self.server.pages.get(self.path)
        data = json.dumps(found).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of pypi.org, by nobody but us."""
    made = tmp_path_factory.mktemp("index") / "pypi.pem"
    words = f"""req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=pypi.org
        -addext subjectAltName=DNS:pypi.org -keyout {made} -out {made.with_suffix(".crt")}"""
    subprocess.run(["openssl", *words.split()], capture_output=True, check=True)
    made.write_text(made.read_text() + made.with_suffix(".crt").read_text())
    return made


@pytest.fixture
def index(certificate: Path) -> Iterator[Index]:
    with Index(certificate) as index:
        serving = threading.Thread(target=index.serve_forever)
        serving.start()
        try:
            yield index
        finally:
            index.shutdown()
            serving.join()


def audit(index: Index, certificate: Path, folder: Path, **locked: str) -> "subprocess.CompletedProcess[str]":
    lock = folder / "some.lock"
    lock.write_text(
        "".join(f"{name}=={version} \\\n    --hash=sha256:{'0' * 64}\n" for name, version in locked.items())
    )
    trusted = str(certificate.with_suffix(".crt"))
    proxied = {"HTTPS_PROXY": index.address, "SSL_CERT_FILE": trusted, "REQUESTS_CA_BUNDLE": trusted}
    return subprocess.run(
        [PROJECT / "scripts" / "audit", lock],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **proxied},
    )


def line_of(ended: "subprocess.CompletedProcess[str]", name: str) -> str:
    """What is said of a release, without the columns' blanks."""
    (found,) = [" ".join(line.split()) for line in ended.stdout.splitlines() if line.startswith(f"{name} ")]
    return found


def test_the_page_of_the_release_answers(index: Index, certificate: Path, tmp_path: Path) -> None:
    index.pages = {"/pypi/one/1.0/json": page("1.0", WITHDRAWN)}
    ended = audit(index, certificate, tmp_path, one="1.0")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert line_of(ended, "one") == "one 1.0 none"
    index.pages = {"/pypi/one/1.0/json": page("1.0", FOUND)}
    ended = audit(index, certificate, tmp_path, one="1.0")
    assert ended.returncode == 1
    assert line_of(ended, "one") == "one 1.0 vulnerable PYSEC-2026-1 (CVE-2026-1, GHSA-1, fixed in 1.2)"


def test_the_page_of_the_project_answers_for_its_newest_release(
    index: Index, certificate: Path, tmp_path: Path
) -> None:
    index.pages = {"/pypi/one/json": page("1.0", WITHDRAWN), "/pypi/two/2.0/json": page("2.0")}
    ended = audit(index, certificate, tmp_path, one="1.0", two="2.0")
    assert ended.returncode == 0
    assert ended.stdout.endswith(
        "2 releases: 2 without a known vulnerability, 0 vulnerable, 0 not answered.\n"
    )
    index.pages["/pypi/one/json"] = page("1.0", FOUND, SAME)
    ended = audit(index, certificate, tmp_path, one="1.0", two="2.0")
    assert ended.returncode == 1
    assert line_of(ended, "one") == "one 1.0 vulnerable PYSEC-2026-1 (CVE-2026-1, GHSA-1, fixed in 1.2)"


def test_of_another_than_the_newest_it_says_that_it_is_not_answered(
    index: Index, certificate: Path, tmp_path: Path
) -> None:
    index.pages = {
        "/pypi/newer/json": page("2.0", releases=("1.9.8", "1.9.8.dev1", "1.9.10rc1", "1.8.5")),
        "/pypi/later/json": page("2.0", FOUND, releases=("1.9.8", "1.9.7"), python=">=3.99"),
        "/pypi/clear/json": page("1.0"),
    }
    ended = audit(index, certificate, tmp_path, newer="1.9.8", later="1.9.7", clear="1.0", gone="1.0")
    assert ended.returncode == 3
    assert line_of(ended, "newer") == "newer 1.9.8 not answered the newest is 2.0; this is the newest of 1.9"
    assert line_of(ended, "later") == (
        "later 1.9.7 not answered the newest is 2.0, for Python >=3.99; the newest of 1.9 is 1.9.8"
    )
    assert line_of(ended, "clear") == "clear 1.0 none"
    assert "the page of the project cannot be had: HTTP Error 404" in line_of(ended, "gone")
    assert "4 releases: 1 without a known vulnerability, 0 vulnerable, 3 not answered.\n" in ended.stdout
    assert "What is not answered may be vulnerable" in ended.stdout


def test_a_vulnerability_counts_for_more_than_what_is_not_answered(
    index: Index, certificate: Path, tmp_path: Path
) -> None:
    index.pages = {"/pypi/one/json": page("1.0", FOUND), "/pypi/old/json": page("2.0")}
    ended = audit(index, certificate, tmp_path, one="1.0", old="1.0")
    assert ended.returncode == 1
    assert ended.stdout.startswith("locked ")
    assert "0 without a known vulnerability, 1 vulnerable, 1 not answered" in ended.stdout


def test_an_index_that_cannot_be_asked_is_no_answer(index: Index, certificate: Path, tmp_path: Path) -> None:
    index.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # has no certificate: no connection comes about
    ended = audit(index, certificate, tmp_path, one="1.0")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr
