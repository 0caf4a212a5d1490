"""The page of the installation."""

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from dashboard.gauges import Gauge


def test_the_versions_are_those_of_the_product_and_of_the_server_that_answers(
    owner: Client, settings: Any
) -> None:
    page = owner.get("/settings/system/").content.decode()
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    assert re.search(rf'OKMQ</th><td class="mono">{re.escape(project["version"])}</td>', page)
    assert re.search(r"durable<br><span[^>]*>(Valkey|Redis) [0-9]+[.][0-9.]+</span>", page)


def rows(page: str) -> str:
    return re.sub(r"\s+", " ", page.split('id="stores-table"')[1].split("</section>")[0])


def test_memory_and_connections_say_of_how_much(owner: Client) -> None:
    said = rows(owner.get("/settings/system/").content.decode())
    size = r"[0-9.]+ [KMGT]iB"
    assert re.search(
        rf'{size}<br><span class="small faint" title="(maxmemory|memory of its machine[^"]*)">of {size}', said
    )
    assert re.search(
        r'[0-9,]+<br><span class="small faint" title="maxclients">of [0-9,]+</span><svg class="meter"', said
    )


@pytest.mark.parametrize("private", [True, False])
def test_the_disk_of_a_private_store_is_told(
    owner: Client, settings: Any, tmp_path: Path, private: bool
) -> None:
    settings.ENV = replace(settings.ENV, private_store=private, data_dir=tmp_path)
    said = rows(owner.get("/settings/system/").content.decode())
    found = re.search(
        r"Disk of the data folder:</span> [0-9.]+ .iB of [0-9.]+ .iB used, [0-9.]+ .iB free", said
    )
    assert (found is not None) is private


@pytest.mark.parametrize(
    ("gauge", "share", "is_short", "left"),
    [
        (Gauge(0, 0), None, False, 0),
        (Gauge(5, 10), 0.5, False, 5),
        (Gauge(9, 10), 0.9, True, 1),
        (Gauge(11, 10), 1.1, True, 0),
    ],
)
def test_a_gauge_is_short_from_nine_tenths_on(
    gauge: Gauge, share: float | None, is_short: bool, left: int
) -> None:
    assert (gauge.share, gauge.is_short, gauge.left) == (share, is_short, left)
