"""Documents that cannot rot: what they show is run, what they list is compared."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from okmq import env
from okmq.prove.promises import NOT_PROMISED, PROMISES
from tests.product import Product

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def variables(text: str) -> set[str]:
    return set(re.findall(r"\bOKMQ_[A-Z_]+\b", text))


def read_by_the_product() -> set[str]:
    return set(re.findall(r'"(OKMQ_[A-Z_]+)"', Path(env.__file__).read_text()))


@pytest.mark.running
def test_the_calls_of_the_readme_do_what_it_says(shared: Product) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    script = block.replace("http://127.0.0.1:8000", shared.url).replace("TOKEN=…", f"TOKEN={shared.token}")
    done = subprocess.run(
        ["bash", "-euc", script.replace("curl -s", "curl -sS --fail-with-body -w '\\n'")],
        capture_output=True,
        text=True,
        check=True,
    )
    created, published, read, committed = map(json.loads, done.stdout.splitlines())
    assert created["name"] == "orders"
    assert [receipt["offset"] for receipt in published] == [1, 2]
    assert '"body":{"total": 12.50}' in done.stdout
    assert [message["offset"] for message in read] == [1, 2]
    assert committed == {"offset": 2, "previous": 0}


def test_the_table_of_variables_is_what_is_read() -> None:
    table = {
        row.split("`")[1]
        for row in (ROOT / "docs/configuration.md").read_text().splitlines()
        if row.startswith("| `OKMQ_")
    }
    assert table == read_by_the_product()


def test_the_example_environment_lists_every_variable() -> None:
    assert variables((ROOT / ".env.example").read_text()) == read_by_the_product()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_only_variables_and_files_that_exist(document: Path) -> None:
    text = document.read_text()
    assert variables(text) <= read_by_the_product()
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    missing = [link for link in links if not (document.parent / link).exists()]
    assert missing == []


def test_the_guarantees_are_those_that_a_proof_writes_and_their_tests_exist() -> None:
    page = (ROOT / "docs/guarantees.md").read_text()
    for promise in PROMISES:
        path, _, name = promise.test.partition("::")
        assert f"| {promise.sentence} |" in page
        assert f"[`{name}`](../{path})" in page
        assert re.search(rf"^(async )?(def|class) {name}\b", (ROOT / path).read_text(), re.MULTILINE)
    assert page.endswith(NOT_PROMISED)
