"""Where requests go that the data plane does not take."""

from django.urls import include, path

urlpatterns = [
    path("api/v1/", include("streams.api.urls")),
    path("", include("dashboard.urls")),
]
