"""Forms that were too large to be read: those of strangers lead to the login, as every form of theirs does."""

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from dashboard.views.door import to_login
from streams.api.errors import is_for_programs
from streams.api.parsing import UNREAD


class UnreadToLogin(MiddlewareMixin):
    """Answers before the form is looked at, which is not there."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        is_unread = UNREAD in getattr(request, "scope", {})
        if not is_unread or is_for_programs(request):
            return None
        if request.user.is_authenticated:
            raise RequestDataTooBig("This form was not read.")
        return to_login(request)
