"""What a browser loads comes from this server, is what was vendored, and is small."""

import gzip
import json
import re
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "dashboard" / "static"
VENDOR = STATIC / "vendor"
TEMPLATES = ROOT / "templates"
MANIFEST = json.loads((VENDOR / "manifest.json").read_text("utf-8"))["files"]

OWN = [
    path
    for folder in (STATIC, TEMPLATES)
    for path in sorted(folder.rglob("*"))
    if path.is_file() and VENDOR not in path.parents and path.suffix in {".html", ".css", ".js", ".svg"}
]
# The name of the SVG vocabulary; nothing is loaded from it.
SVG_NAMESPACE = "http://www.w3.org/2000/svg"


def gzipped(paths: list[Path]) -> int:
    return sum(len(gzip.compress(path.read_bytes(), 9)) for path in paths)


@pytest.mark.parametrize("row", MANIFEST, ids=lambda row: str(row["file"]))
def test_a_vendored_file_is_what_the_manifest_says(row: dict[str, str]) -> None:
    assert sha256((VENDOR / row["file"]).read_bytes()).hexdigest() == row["sha256"]


def test_nothing_is_vendored_that_the_manifest_does_not_list() -> None:
    found = {str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file()}
    assert found - {"manifest.json"} == {row["file"] for row in MANIFEST}


def test_every_vendored_library_has_its_licence() -> None:
    assert {Path(row["file"]).parts[0] for row in MANIFEST} == {
        path.parts[-3] for path in VENDOR.glob("*/*/LICENSE")
    }


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_our_own_files_name_no_outside_address(path: Path) -> None:
    text = path.read_text("utf-8").replace(SVG_NAMESPACE, "")
    assert re.findall(r"(?:https?:|wss?:)?//[a-z0-9-]+\.[a-z]{2,}[^\s]*", text) == []


@pytest.mark.parametrize("path", sorted(VENDOR.rglob("*.css")), ids=lambda path: path.name)
def test_a_vendored_style_sheet_loads_nothing_from_elsewhere(path: Path) -> None:
    assert re.findall(r"(?:url\(|@import\s)\s*[\"']?(?:https?:)?//[^)\"']*", path.read_text("utf-8")) == []


@pytest.mark.parametrize("path", [path for path in OWN if path.suffix == ".html"], ids=lambda path: path.name)
def test_a_template_has_no_inline_script_style_or_handler(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|<script(?![^>]*\ssrc=)", text) == []


@pytest.mark.parametrize("path", [path for path in OWN if path.suffix == ".html"], ids=lambda path: path.name)
def test_a_template_is_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 140


def test_our_own_scripts_stay_under_20_kilobytes() -> None:
    assert gzipped(sorted((STATIC / "js").glob("*.js"))) < 20_000


def test_our_own_style_sheets_stay_under_10_kilobytes() -> None:
    assert gzipped(sorted((STATIC / "css").glob("*.css"))) < 10_000
