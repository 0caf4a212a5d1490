"""Django's settings for ``bench.drf_view``, with nothing that a view can do without."""

SECRET_KEY = "bench"  # nothing is signed with it
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "bench.drf_view"
INSTALLED_APPS = ["rest_framework"]
MIDDLEWARE: list[str] = []
USE_TZ = True
REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
}
