"""Commands to copy: what is shown as curl says the same in Python, and both run."""

import subprocess
import sys

import pytest

from dashboard.templatetags.shell import as_python, call, people_command, workspace_command
from tests.product import Product

HERE = "http://127.0.0.1:8000"


def requested(command: str) -> list[str]:
    lines = as_python(command).splitlines()
    return [line.removeprefix("print(client.request(") for line in lines if line.startswith("print")]


def test_method_path_and_body_are_those_of_the_curl_calls() -> None:
    assert requested(people_command(HERE)) == [
        f"'GET', '{HERE}/api/v1/users/').json())",
        f"""'POST', '{HERE}/api/v1/users/', content='{{"name": "ada", "role": "viewer"}}').json())""",
    ]
    assert requested(workspace_command(HERE, "billing"))[1].startswith(
        f"'PATCH', '{HERE}/api/v1/workspaces/billing'"
    )


def test_quotes_in_a_body_survive_both() -> None:
    body = """{"name": "O'Hara"}"""
    assert requested(call(f"{HERE}/x", body=body)) == [f"'POST', '{HERE}/x', content={body!r}).json())"]


@pytest.mark.running
def test_the_python_runs(running: Product, unique: str) -> None:
    program = as_python(call(f"{running.url}/api/v1/streams/", body=f'{{"name": "{unique}"}}'))
    environ = {"OKMQ_TOKEN": running.token, "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True
    )
    assert unique in ran.stdout
