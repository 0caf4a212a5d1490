"""A page for what Django answers with 405 and no word, such as the address of an action that somebody opens."""

from django.http import HttpRequest, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin


class WrongMethodsTold(MiddlewareMixin):
    """Puts the page into empty answers of 405. Answers of the API have their own body."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not isinstance(response, HttpResponseNotAllowed) or response.content:
            return response
        answer = render(request, "405.html", status=405)
        answer["Allow"] = response["Allow"]
        return answer
