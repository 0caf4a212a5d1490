"""Which rows of a list are open, as its address says (``open``, an offset, several times)."""

import re

from django.http import HttpRequest

MOST_OPEN = 10
OFFSET = re.compile(r"[1-9][0-9]{0,14}")


def offsets_open(request: HttpRequest) -> list[int]:
    """Each of them once, in the order of the address; what is no offset, and more than a page opens, is left out."""
    asked = [int(text) for text in request.GET.getlist("open") if OFFSET.fullmatch(text)]
    return list(dict.fromkeys(asked[:MOST_OPEN]))
