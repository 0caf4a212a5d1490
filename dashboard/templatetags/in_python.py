"""The calls that the pages show as curl, in Python."""

import shlex
from collections.abc import Sequence

from django import template

register = template.Library()


@register.simple_tag
def as_python(command: str) -> str:
    """Curl calls as ``call`` writes them, in Python with httpx; those that have no end side by side."""
    calls = command.split("\n\n")
    follows = calls[0].startswith("curl -N ")
    lines = ["import os", "", "import httpx", ""]
    if follows and len(calls) > 1:
        lines.insert(1, "from concurrent.futures import ThreadPoolExecutor")
    lines.append('client = httpx.Client(headers={"Authorization": f"Bearer {os.environ[\'OKMQ_TOKEN\']}"})')
    if follows:
        return "\n".join(lines) + _followed([shlex.split(curl)[2] for curl in calls])
    for curl in calls:
        words = shlex.split(curl.replace("\\\n", " "))
        method, url, body = "", "", ""
        for word, after in zip(words, [*words[1:], ""], strict=True):
            if word == "-X":
                method = after
            elif word == "-d":
                body = after
            elif word.startswith("http"):
                url = word
        sent = f", content={body!r}" if body else ""
        method = method or ("POST" if body else "GET")
        # What is deleted may be answered with nothing, and only the API answers with JSON.
        told = "text" if method == "DELETE" or "/api/v1/" not in url else "json()"
        lines.append(f"print(client.request({method!r}, {url!r}{sent}).{told})")
    return "\n".join(lines)


def _followed(urls: Sequence[str]) -> str:
    """What prints the lines of event streams as they come."""
    follow = """

def follow(url):
    with client.stream("GET", url, timeout=None) as answer:
        for line in answer.iter_lines():
            print(line, flush=True)

"""
    if len(urls) == 1:
        return f"{follow}\nfollow({urls[0]!r})"
    told = "".join(f"    {url!r},\n" for url in urls)
    threads = f"with ThreadPoolExecutor({len(urls)}) as threads:\n    threads.map(follow, urls)"
    return f"{follow}\nurls = [\n{told}]\n{threads}"
