"""Django's settings, one file for every environment; what differs comes from ``okmq.env``."""

import logging
import secrets
import sys
import tomllib
from urllib.parse import unquote, urlsplit

import dj_database_url
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from okmq import env as environment
from streams import addresses

try:
    ENV = environment.load()
except environment.EnvError as error:
    raise ImproperlyConfigured(str(error)) from None

BASE_DIR = environment.PROJECT
RELEASE = tomllib.loads((BASE_DIR / "pyproject.toml").read_text("utf-8"))["project"]["version"]
DEBUG = ENV.debug


def _secret_key() -> str:
    """The key from the environment, or one made once and kept beside the data, readable by its owner only."""
    if ENV.secret_key:
        return ENV.secret_key
    path = ENV.data_dir / "secret_key"
    if not path.exists():
        ENV.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_name(f"secret_key.{secrets.token_hex(4)}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(64))
        try:
            path.hardlink_to(fresh)  # the first process wins; the others read what it wrote
        except FileExistsError:
            pass
        fresh.unlink()
    return path.read_text()


SECRET_KEY = _secret_key()
ALLOWED_HOSTS = list(ENV.allowed_hosts)
if ENV.host not in {"0.0.0.0", "::"} and ENV.host not in ALLOWED_HOSTS:
    ALLOWED_HOSTS.append(ENV.host)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "csp",
    "streams",
    "dashboard",
    "okmq",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "dashboard.packing.PagesPacked",
    "dashboard.languages.spoken",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "dashboard.wrong_methods.WrongMethodsTold",
    "dashboard.shown_again.FormsShownAgain",
    "dashboard.views.unread.UnreadToLogin",
]

ROOT_URLCONF = "okmq.urls"
ASGI_APPLICATION = "okmq.asgi.application"
# A form may hold the largest body of all, in which a browser sends each line's end as two bytes, and its other fields.
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 16 * 1024 * 1024 + 1024 * 1024
# None is written to a temporary file: the disk that it would fill may be the store's (``okmq.web.held`` bounds them).
FILE_UPLOAD_MAX_MEMORY_SIZE = DATA_UPLOAD_MAX_MEMORY_SIZE
# Both slash forms are routes of their own; a redirect would lose a POST's body.
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["dashboard.templatetags.dates"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {"default": dj_database_url.parse(ENV.database_url, conn_max_age=60)}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # Write-ahead logging lets readers go on beside a writer; a transaction that takes the write lock at once
    # waits its turn instead of failing with "database is locked" half-way.
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# The pub/sub layer keeps nothing in the store: the core layer would write every frame into the durable log.
# Alerts by e-mail; without a server they are refused when they are asked for.
_MAIL = urlsplit(ENV.mail_url or "")
EMAIL_HOST, EMAIL_PORT = (
    _MAIL.hostname or "",
    _MAIL.port or {"smtps": 465, "starttls": 587}.get(_MAIL.scheme, 25),
)
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_MAIL.username or ""), unquote(_MAIL.password or "")
EMAIL_USE_SSL, EMAIL_USE_TLS = _MAIL.scheme == "smtps", _MAIL.scheme == "starttls"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = ENV.mail_from

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": addresses.nodes(ENV.redis_url)[:1], "prefix": "okmq.live"},
    },
}

AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "dashboard:login"
LOGIN_REDIRECT_URL = "dashboard:overview"
LOGOUT_REDIRECT_URL = "dashboard:login"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LANGUAGE_COOKIE_NAME = "okmq_language"
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["dashboard.l10n"]
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

STATIC_URL = "/static/"
STATIC_ROOT = ENV.data_dir / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
if "pytest" in sys.modules:
    STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}

REST_FRAMEWORK = {
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["streams.api.parsing.StrictJSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["streams.api.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "streams.api.errors.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "streams.api.negotiation.AlwaysJSON",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "OKMQ",
    "DESCRIPTION": "Durable message streams: publish, read, commit; streams, tokens, workspaces, history.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "RunState": "streams.models.history.RunState.values",
        "QueryState": "streams.models.query.QueryState.values",
        "ReplayState": "streams.models.replay.ReplayState.values",
        "PreviewReason": "streams.api.retention.REASONS",
        "GroupPreviewReason": "streams.api.group_effects.REASONS",
        "PushedOutReason": "streams.api.pushed_out.REASONS",
    },
}

# Message bodies are hostile input: nothing runs or loads that this server did not serve.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    },
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "dashboard.views.errors.csrf_failure"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = ENV.https
if ENV.https:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_HSTS_SECONDS = 31_536_000
    # For whole domains, so only where somebody says that all of them speak HTTPS.
    SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = SECURE_SSL_REDIRECT = ENV.https_strict
    SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)/?$"]  # asked by who stands beside it

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"not_refused_sockets": {"()": "streams.logs.NotRefusedSockets"}},
    "formatters": {"json": {"()": "streams.logs.JsonFormatter"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "okmq": {"level": "INFO"},
        "streams": {"level": "INFO"},
        "dashboard": {"level": "INFO"},
        # The server has set its own up before it loads us; from then on its lines are as ours.
        "uvicorn": {"handlers": ["console"], "level": "WARNING", "propagate": False},
        "uvicorn.error": {"level": "WARNING", "filters": ["not_refused_sockets"]},
    },
}
# What libraries warn of is a line of the log, too.
logging.captureWarnings(True)
