"""What every view of the API has."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast
from urllib.parse import urlencode

from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from streams import rates, store
from streams.access import Caller
from streams.api.errors import refused_method
from streams.api.fields import Strict
from streams.api.operation import Operation
from streams.api.parsing import NoBody, StrictRequest
from streams.api.queries import asked
from streams.api.schema import OperationSchema
from streams.errors import Refusal


class ApiView(APIView):
    """A view that declares its operations; scope and query are checked before the handler runs.

    Attributes:
        operations: method → what it takes and gives.
        asked: the checked query parameters of this request.
    """

    http_method_names = ["get", "head", "post", "patch", "delete"]
    operations: ClassVar[Mapping[str, Operation]] = {}
    schema = OperationSchema()
    asked: dict[str, Any]

    @property
    def caller(self) -> Caller:
        return cast(Caller, self.request.user)

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {"Cache-Control": "no-store"}

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        return StrictRequest(
            request,
            parsers=self.get_parsers(),
            authenticators=self.get_authenticators(),
            negotiator=self.get_content_negotiator(),
            parser_context=self.get_parser_context(request),
        )

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        operation = self.operation_of(request)
        if operation.scope is not None:
            self.caller.demand(operation.scope)
        self.asked = asked(request.query_params, operation.query, text=request.META["QUERY_STRING"])
        if operation.body is None and request.method not in {"GET", "HEAD"}:
            self._refuse_body()

    def _refuse_body(self) -> None:
        """Refuse a body where none is asked for: its sender takes it for read.

        Raises:
            Refusal, UnsupportedMediaType, ParseError.
        """
        data = self.request.data
        if isinstance(data, NoBody) or (data == {} and self.request.method != "DELETE"):
            return
        if self.request.method == "DELETE":
            # Whoever names in a body what is to go would lose everything if it were not read.
            sentence = "A DELETE takes no body: what to delete is in its path."
        else:
            sentence = "This takes no body."
        raise Refusal("validation_error", sentence, fields=sorted(data) if isinstance(data, dict) else [])

    def operation_of(self, request: Request) -> Operation:
        """Raises Refusal ``method_not_allowed``."""
        method = "GET" if request.method == "HEAD" else request.method or ""
        if method not in self.operations:
            raise self.refuse_method()
        return self.operations[method]

    def check_permissions(self, request: Request) -> None:
        """Refuse a method that is not there before it is counted, as the data plane does."""
        super().check_permissions(request)
        self.operation_of(request)

    def check_throttles(self, request: Request) -> None:
        """Count the request against its token's share; a person has none.

        Raises:
            Refusal: ``rate_limited``.
            LogError: the store, which counts, does not answer.
        """
        workspace = self.caller.workspace
        if request.auth is not None and workspace.rate_limit is not None:
            share = rates.admitted(request.auth.pk, limit=workspace.rate_limit, burst=workspace.rate_burst)
            self.headers |= store.log().run(share)

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        raise self.refuse_method()

    def refuse_method(self) -> Refusal:
        """405, with what is allowed."""
        return refused_method({*self.operations, *({"HEAD"} if "GET" in self.operations else ())})

    def sent(self, schema: type[Strict]) -> dict[str, Any]:
        """The checked object in the body.

        Raises:
            ValidationError, Refusal: it is not as the schema says, or there is none.
        """
        found: dict[str, Any] = schema().run_validation(self.body())
        return found

    def body(self) -> Any:
        """The decoded body; nothing sent is ``{}`` only where the operation says so."""
        data = self.request.data
        if not isinstance(data, NoBody):
            return data
        if self.operations[self.request.method or ""].body_optional:
            return {}
        raise Refusal("validation_error", "The body is empty; send a JSON object.", fields=[], errors={})

    def rows(self, schema: type[Serializer[Any]], objects: Sequence[Any]) -> list[Any]:
        """Objects as they go out."""
        return list(schema(objects, many=True, context={"request": self.request}).data)

    def page(self, rows: list[Any], *, next_after: str | int | None) -> Response:
        """A bare array, with a link to the next page where there is one."""
        return Response(rows, headers=self.link(next_after=next_after))

    def link(self, *, next_after: str | int | None) -> dict[str, str]:
        """The header that names the next page; none where there is none."""
        if next_after is None:
            return {}
        parameters = [
            (name, value)
            for name, values in self.request.query_params.lists()
            if name != "after"
            for value in values
        ]
        query = urlencode([*parameters, ("after", next_after)])
        url = self.request._request.build_absolute_uri(self.request.path)
        return {"Link": f'<{url}?{query}>; rel="next"'}
