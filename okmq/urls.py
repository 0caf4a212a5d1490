"""Where requests go that the data plane does not take."""

from django.urls import include, path, re_path
from django.views.decorators.csrf import csrf_exempt

from okmq.web.metrics import MetricsView
from streams.api.errors import not_found
from streams.api.urls import at, service_urls

handler400 = "dashboard.views.errors.bad_request"
handler500 = "dashboard.views.errors.server_error"

urlpatterns = [
    path("api/v1/", include("streams.api.urls")),
    re_path(r"^api(?:/|\Z)", csrf_exempt(not_found), name="not-found"),
    *service_urls,
    at("metrics", MetricsView.as_view(), "metrics"),
    path("", include("dashboard.urls")),
]
