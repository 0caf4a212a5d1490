"""Pages travel packed. Files and answers of the API stay as they are: they are large, or sent while they are made."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class PagesPacked(GZipMiddleware):
    """Django's, which hides the true length by some random bytes, for pages alone."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.streaming or not response.headers.get("Content-Type", "").startswith("text/html"):
            return response
        return super().process_response(request, response)
