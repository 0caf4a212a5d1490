"""Publishing as an ordinary Django REST framework view over the same script: what the data plane is compared with.

Kept as light as such a view can be: no middleware, a token from the same digests remembered for as long, one
serializer, no database. Served by the same server with the same settings; ``BENCH_REDIS_URL`` names the store.
"""

import os
import time
from typing import Any

import msgspec
from django.core.asgi import get_asgi_application
from django.urls import path
from rest_framework import serializers
from rest_framework.exceptions import NotAuthenticated, NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from streams import bearer
from streams.log import config
from streams.log.append import append
from streams.log.client import Log
from streams.log.entries import NewMessage

REMEMBERED_S = 1.5

log = Log(os.environ["BENCH_REDIS_URL"])
grants: dict[str, tuple[float, config.TokenGrant]] = {}
streams: dict[tuple[int, str], str] = {}


class MessageSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(max_length=50)
    body = serializers.JSONField()
    key = serializers.CharField(max_length=255, required=False)


class MessagesView(APIView):
    def post(self, request: Request, name: str) -> Response:
        grant = granted(request)
        if (grant.workspace_id, name) not in streams:
            found = log.run(config.stream_id_of(grant.workspace_id, name))
            if found is None:
                raise NotFound
            streams[grant.workspace_id, name] = found
        serializer = MessageSerializer(data=request.data, many=True)
        serializer.is_valid(raise_exception=True)
        messages = [
            NewMessage(id=item["id"], body=msgspec.json.encode(item["body"]), key=item.get("key"))
            for item in serializer.validated_data
        ]
        appended = log.run(append(streams[grant.workspace_id, name], messages))
        answer = [
            {"id": message.id, "offset": stored.offset, "duplicate": stored.duplicate}
            for message, stored in zip(messages, appended, strict=True)
        ]
        return Response(answer, status=201)


def granted(request: Request) -> config.TokenGrant:
    """The grant of the request's token."""
    secret = bearer.from_header(request.headers.get("authorization", ""))
    digest = bearer.digest(secret or "")
    held = grants.get(digest)
    if held is None or held[0] < time.monotonic() - REMEMBERED_S:
        grant = log.run(config.token_grant(digest))
        if grant is None:
            raise NotAuthenticated
        held = grants[digest] = (time.monotonic(), grant)
    return held[1]


urlpatterns = [path("api/v1/streams/<str:name>/messages", MessagesView.as_view())]
application = get_asgi_application()
