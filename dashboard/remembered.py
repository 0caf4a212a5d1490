"""What a person chose, kept in their browser for a year and told to no script."""

from django.http import HttpRequest, HttpResponse

YEAR_S = 365 * 86_400


def remember(
    answer: HttpResponse, request: HttpRequest, cookie: str, chosen: str, *, path: str = "/"
) -> None:
    """Have the browser keep a choice, over TLS only where it was made over TLS."""
    answer.set_cookie(
        cookie,
        chosen,
        path=path,
        max_age=YEAR_S,
        httponly=True,
        samesite="Lax",
        secure=request.is_secure(),
    )
