"""What is secret stands where it has to, and nowhere else: not in files, logs, figures, nor in a list of processes."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.product import Product
from tests.waiting import until

pytestmark = pytest.mark.running


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, dict[str, str]]]:
    """A product that was used in good and in bad ways, and its secrets by what they are."""
    product = Product(data_dir=tmp_path_factory.mktemp("secrets") / "data", more={"OKMQ_HISTORY": "off"})
    try:
        product.start()
        secrets = {"password": product.password, "the admin's token": product.token}
        with product.client() as client:
            made = client.post("/tokens/", json={"name": "x", "scopes": ["read"]}).raise_for_status().json()
            secrets["a token"] = made["token"]
            person = client.post("/users/", json={"name": "ann", "role": "viewer"}).raise_for_status().json()
            secrets["a one-time password"] = person["password"]
            rule = {"name": "r", "stream": "*", "watch": "lag", "limit": 1}
            told = client.post("/alerts/rules/", json={**rule, "webhook_url": "https://hooks.example/x"})
            secrets["a webhook's secret"] = told.raise_for_status().json()["webhook_secret"]
        secrets["a session"] = _misused(product, secrets)
        yield product, secrets
    finally:
        product.end_all()


def _misused(product: Product, secrets: dict[str, str]) -> str:
    """Say secrets in wrong places, log in; the session's key."""
    token = secrets["a token"]
    with httpx.Client(base_url=product.url, verify=False) as browser:
        for method, path in (
            ("GET", f"/api/v1/streams/?token={token}"),
            ("GET", f"/api/v1/streams/{token}"),
            ("GET", f"/api/v1/streams/{token}/messages"),
            ("POST", f"/api/v1/publish/{token}"),
            ("GET", f"/nothing/{token}"),
        ):
            browser.request(
                method, path, headers={"authorization": token, "user-agent": "u", "referer": path}
            )
        browser.get("/login/")
        form = {
            "username": "admin",
            "password": product.password,
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
        }
        referer = {"Referer": f"{product.url}/login/"}
        browser.post("/login/", data={**form, "username": "nobody"}, headers=referer)
        browser.post("/login/", data=form, headers=referer)
        browser.get("/settings/system/").raise_for_status()
        return browser.cookies["sessionid"]


def test_no_secret_stands_in_a_log(used: tuple[Product, dict[str, str]]) -> None:
    product, secrets = used
    access = product.data_dir / "log" / "access.log"
    until(lambda: "/settings/system/" in access.read_text(), what="the last call is logged")
    for path in (product.data_dir / "log").iterdir():
        text = path.read_text("utf-8", "replace")
        assert [what for what, secret in secrets.items() if secret in text] == [], path
    assert [what for what, secret in secrets.items() if secret in product.output] == []


def test_no_secret_stands_in_a_file_but_those_that_are_kept_for_it(
    used: tuple[Product, dict[str, str]],
) -> None:
    """A session's key and a webhook's secret have to be known to the product, so they are in its database."""
    product, secrets = used
    used_by_itself = {"a session", "a webhook's secret"}
    for path in product.data_dir.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            found = {what for what, secret in secrets.items() if secret.encode() in held}
            allowed = {"the admin's token"} if path.name == "admin_token" else set()
            allowed |= used_by_itself if path.name.startswith("okmq.sqlite3") else set()
            assert found <= allowed, path


def test_what_is_kept_is_for_the_owner_only(used: tuple[Product, dict[str, str]]) -> None:
    """By its own mode, or by that of a folder around it."""
    product, _ = used
    for path in product.data_dir.rglob("*"):
        around = [path, *path.parents]
        inside = around[: around.index(product.data_dir) + 1]
        assert any(each.stat().st_mode & 0o077 == 0 for each in inside), path


def test_no_secret_is_shown_in_a_list_of_processes(used: tuple[Product, dict[str, str]]) -> None:
    product, secrets = used
    running = product.alive()
    assert len(running) >= 3
    keeper = (product.data_dir / "valkey" / "keeper").read_text()
    for pid in running:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        assert [what for what, secret in secrets.items() if secret.encode() in words] == []
        assert keeper.encode() not in words


def test_no_secret_is_told_to_who_looks(used: tuple[Product, dict[str, str]]) -> None:
    """In the figures, the events, the lists and the pages of one who may see everything."""
    product, secrets = used
    told = [
        product.page(path) for path in ("/", "/events/", "/settings/tokens/", "/settings/system/", "/alerts/")
    ]
    with product.client() as client:
        told += [
            client.get(path).raise_for_status().text for path in ("/events", "/tokens/", "/alerts/rules/")
        ]
        told.append(client.get(f"{product.url}/metrics").raise_for_status().text)
    for text in told:
        assert [what for what, secret in secrets.items() if secret in text] == []
