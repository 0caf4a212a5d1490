"""The rules and dashboards in docs/monitoring: what they ask for is what a running product tells, all of it."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, get_args

import httpx
import msgspec
import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from streams import health, verdicts
from streams.health import Health
from streams.log import config, healths, standing
from streams.log.client import Log
from streams.upkeep.watching import sample_of
from streams.verdicts import Verdict
from tests.product import Product
from tests.waiting import until

DOCS = Path(__file__).parents[3] / "docs"
DASHBOARDS = sorted((DOCS / "monitoring").glob("*.json"))
RULES = DOCS / "monitoring" / "okmq-rules.yml"

PUBLISH = "/api/v1/streams/{name}/messages"

OF_PROMETHEUS = {"job", "instance"}
"""Labels that a scrape adds; beside them it makes the series ``up``."""

SELECTOR = re.compile(r"\b((?:okmq|redis)_\w+)(?:\{((?:[^}\"]|\"[^\"]*\")*)\})?")
MATCHER = re.compile(r"(\w+)(?:=~|=)\"([^\"]*)\"")
GROUPING = re.compile(r"\b(?:by|without|on|ignoring) \(([^)]*)\)")
SAID = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")

Exported = Mapping[str, Mapping[str, set[str]]]
"""Names of series with their labels and the values that these have."""


@pytest.fixture(scope="module")
def exported(running: Product) -> Exported:
    """What a product tells in which everything has happened that a series is about."""
    with running.client() as client:
        limits = {"ttl": 3600, "max_messages": 1000, "max_bytes": 100_000}
        assert client.post("/streams/", json={"name": "monitored", **limits}).is_success
        assert client.post("/streams/monitored/groups/", json={"name": "billing"}).is_success
        messages = [{"id": f"m{n}", "body": n} for n in range(9)]
        assert client.post("/streams/monitored/messages", json=messages).is_success
        assert client.post("/streams/monitored/groups/billing/fetch", json={"limit": 2}).is_success

    def scraped() -> str:
        """What ``/metrics`` tells once the requests are counted, which takes a second."""
        catches_up(running, "monitored", "billing")
        headers = {"Authorization": f"Bearer {running.token}"}
        text = httpx.get(f"{running.url}/metrics", headers=headers).raise_for_status().text
        return text if f'method="POST",route="{PUBLISH}"' in text and "okmq_group_eta" in text else ""

    text = until(scraped, what="everything is told")
    found: dict[str, dict[str, set[str]]] = {}
    for family in text_string_to_metric_families(text):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            labels = found.setdefault(sample.name, {})
            for label, value in sample.labels.items():
                labels.setdefault(label, set()).add(value)
    found["okmq_group_health"]["health"] |= set(get_args(verdicts.Status))
    return found


def catches_up(product: Product, stream: str, group: str) -> None:
    """As if the worker had found, just now, that a group catches up."""
    with closing(Log(product.store_url)) as log:
        (stream_id,) = [each.stream_id for each in log.run(config.streams()) if each.name == stream]
        now = sample_of(log.run(standing.inspect(stream_id, group)), held=0, polls=0)
        samples = [
            msgspec.structs.replace(now, lag=now.lag + more) for more in range(verdicts.WINDOW, -1, -1)
        ]
        verdict = Verdict("catching up", "Less waits than a minute ago.", eta_seconds=7)
        found = Health(samples=samples, verdict=verdict, since_ms=now.at_ms)
        log.run(healths.put(stream_id, group, health.written(found)))


@cache
def panels() -> list[dict[str, Any]]:
    return [
        panel
        for path in DASHBOARDS
        for panel in json.loads(path.read_text())["panels"]
        if panel["type"] != "row"
    ]


@cache
def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def asked() -> Iterator[tuple[str, str]]:
    """Every expression with the sentences or the legend that go with it."""
    for rule in rules():
        yield rule["expr"], " ".join(rule["annotations"].values())
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]


def named(expression: str) -> dict[str, str]:
    """The series that an expression names, with what stands between their braces."""
    return dict(SELECTOR.findall(expression))


def variables() -> Iterator[str]:
    """What the dashboards ask for to fill their lists."""
    for path in DASHBOARDS:
        for variable in json.loads(path.read_text())["templating"]["list"]:
            if variable["type"] == "query":
                yield variable["query"]["query"]


@pytest.mark.running
def test_every_series_label_and_value_that_is_asked_for_is_told(exported: Exported) -> None:
    told = []
    for expression in [*(expression for expression, _ in asked()), *variables()]:
        for name, matchers in SELECTOR.findall(expression):
            if name not in exported:
                told.append(f"{name}: {expression}")
                continue
            for label, wanted in MATCHER.findall(matchers):
                values = exported[name].get(label, set())
                plain = [value for value in wanted.split("|") if re.fullmatch(r"[\w/{} -]+", value)]
                if label not in {*exported[name], *OF_PROMETHEUS} or not values.issuperset(plain):
                    told.append(f"{name}{{{label}={wanted}}}: {expression}")
    assert told == []


@pytest.mark.running
def test_every_label_that_is_gathered_by_or_said_is_one_of_its_series(exported: Exported) -> None:
    told = []
    for expression, sentences in asked():
        names = named(expression)
        labels = OF_PROMETHEUS.union(*(exported.get(name, {}) for name in names))
        gathered = {each.strip() for found in GROUPING.findall(expression) for each in found.split(",")}
        unknown = (gathered | set(SAID.findall(sentences))) - labels
        told += [f"{label}: {expression}" for label in unknown]
    assert told == []


@pytest.mark.running
def test_every_series_is_on_a_panel_and_in_the_table_of_operations(exported: Exported) -> None:
    shown = {name for panel in panels() for target in panel["targets"] for name in named(target["expr"])}
    assert set(exported) == shown
    listed = set(re.findall(r"`((?:okmq|redis)_\w+)", (DOCS / "operations.md").read_text()))
    parts = re.compile("_(bucket|count|sum)$")
    assert {parts.sub("", name) for name in exported} <= listed


def test_every_rule_has_a_name_of_its_own_a_severity_and_sentences() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    assert {rule["labels"]["severity"] for rule in rules()} == {"critical", "warning"}
    assert all({"summary", "description"} == set(rule["annotations"]) for rule in rules())


def test_operations_lists_the_alerts_that_there_are() -> None:
    listed = re.findall(r"`(Okmq[A-Z]\w+)`", (DOCS / "operations.md").read_text())
    assert sorted(listed) == sorted(rule["alert"] for rule in rules())


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_needs_nothing_but_a_source_of_data(path: Path) -> None:
    text = path.read_text()
    board = json.loads(text)
    assert board["uid"] == path.stem
    assert set(re.findall(r'"type": "prometheus", "uid": "([^"]*)"', text)) == {"${datasource}"}
    known = {variable["name"] for variable in board["templating"]["list"]} | {"__rate_interval", "__all"}
    assert set(re.findall(r"\$\{?([a-z_]\w*)", text)) <= known


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_the_panels_of_a_dashboard_lie_side_by_side(path: Path) -> None:
    found = json.loads(path.read_text())["panels"]
    assert len({panel["id"] for panel in found}) == len(found)
    for one, other in itertools.combinations([panel["gridPos"] for panel in found], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
        assert one["x"] + one["w"] <= 24
