"""Where every request enters: the data plane first, then the API and the pages, and the live sockets."""

import os
from typing import Any, cast

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "okmq.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from django.conf import settings
from django.urls import re_path

from okmq.env import Env
from okmq.supervision import serving
from okmq.web.accesslog import AccessLog
from okmq.web.gate import Gate, SocketGate
from okmq.web.origins import SameOrigin
from okmq.web.traffic import Traffic
from streams.dataplane.app import DataPlane
from streams.dataplane.request import Receive, Scope, Send
from streams.exchange import Exchange
from streams.log.client import AsyncLog

try:
    from dashboard.urls import websocket_urlpatterns
except ImportError:
    websocket_urlpatterns = []

env: Env = settings.ENV
access_log = AccessLog(None if env.access_log == "stdout" else env.access_log_file)
traffic = Traffic()


def record(exchange: Exchange) -> None:
    """What becomes of every request when it has been answered."""
    traffic.note(exchange)
    if env.access_log != "off":
        access_log.note(exchange)


data_plane = DataPlane(
    env.redis_url,
    memory_url=env.memory_redis_url,
    allowed_hosts=settings.ALLOWED_HOSTS,
    undo_s=env.undo_s,
    purge_for_good=env.purge_for_good,
    otherwise=Gate(django_application, record=record),
    record=record,
)


async def no_socket(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuses a WebSocket at a path that has none; without it the router raises, and the server answers 500."""
    await receive()
    await send({"type": "websocket.close", "code": 4404})


socket_routes = URLRouter([*websocket_urlpatterns, re_path("", cast(Any, no_socket))])
guarded = SameOrigin(AuthMiddlewareStack(socket_routes), allowed_hosts=settings.ALLOWED_HOSTS)
sockets = SocketGate(guarded, record=record)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """ASGI 3: ``http``, ``websocket`` and ``lifespan``."""
    if scope["type"] == "http":
        await data_plane(scope, receive, send)
    elif scope["type"] == "websocket":
        await sockets(scope, receive, send)
    else:
        await lifespan(receive, send)


async def lifespan(receive: Receive, send: Send) -> None:
    """Start and stop what belongs to the event loop."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await data_plane.start()
            access_log.start()
            traffic.start(AsyncLog(env.redis_url))
            serving.begin(env.run_dir)
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            serving.end(env.run_dir)
            await data_plane.stop()
            await access_log.stop()
            await traffic.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return
