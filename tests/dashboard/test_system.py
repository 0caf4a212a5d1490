"""The page of the installation."""

import re
import tomllib

from django.conf import settings
from django.test import Client


def test_the_versions_are_those_of_the_product_and_of_the_server_that_answers(owner: Client) -> None:
    page = owner.get("/settings/system/").content.decode()
    project = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]
    assert re.search(rf'OKMQ</th><td class="mono">{re.escape(project["version"])}</td>', page)
    assert re.search(r"durable<br><span[^>]*>(Valkey|Redis) [0-9]+[.][0-9.]+</span>", page)
