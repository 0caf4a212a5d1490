"""Pages that answer a form with the form, to be mended or agreed to anew: to a browser that goes there they are pages.

A browser writes every answer from 400 on into its console, as a resource that failed to load, whatever stands in it.
The statuses 409 and 422 are for programs, which ask for no HTML before all else; they get them as ever.
"""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin

AGAIN = frozenset({409, 422})


class FormsShownAgain(MiddlewareMixin):
    """Answers 200 where a browser is shown a form again. Answers of the API are no HTML."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        if response.status_code in AGAIN and is_page:
            patch_vary_headers(response, ["Accept"])
            if request.headers.get("Accept", "").startswith("text/html"):
                response.status_code = 200
        return response
