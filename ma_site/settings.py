"""Django settings of the MA. Everything from outside comes through `ma_site.env`, once."""

import os
from pathlib import Path
from typing import Any

from celery.schedules import schedule
from django.utils.translation import gettext_lazy as _

from broker.port import Account
from console.rest import body_limits
from contract import redis_url
from ma_site import env, logs

BASE_DIR = Path(__file__).resolve().parent.parent
ENVIRONMENT = env.read(os.environ)

SECRET_KEY = ENVIRONMENT.secret_key
DEBUG = ENVIRONMENT.debug
ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts)
CSRF_TRUSTED_ORIGINS = [ENVIRONMENT.base_url]
SECURE = ENVIRONMENT.base_url.startswith("https://")

# -- what the packages below read ----------------------------------------------------------------------------
MA_BASE_URL = ENVIRONMENT.base_url
MA_DATA = ENVIRONMENT.data
MA_DLA_ADDRESS = ENVIRONMENT.dla_address
MA_LOST_AFTER_SECONDS = ENVIRONMENT.lost_after_seconds
MA_TRUSTED_PROXIES = ENVIRONMENT.trusted_proxies
MA_SECOND_PERSON_ABOVE = ENVIRONMENT.second_person_above
MA_GIVEN_BACK_OFTEN = ENVIRONMENT.given_back_often
MA_BIN_DAYS = ENVIRONMENT.bin_days
MA_RETENTION_DAYS = ENVIRONMENT.retention_days
MA_BACKUP_HOURS = ENVIRONMENT.backup_hours
MA_RETENTION_SILENT_DAYS = ENVIRONMENT.retention_silent_days
MA_INTAKE_ROWS_PER_MINUTE = ENVIRONMENT.intake_rows_per_minute
MA_INTAKE_BYTES_PER_MINUTE = ENVIRONMENT.intake_mb_per_minute * 1024 * 1024
MA_DEADMAN_URL = ENVIRONMENT.deadman_url
MA_DEADMAN_METHOD = ENVIRONMENT.deadman_method
MA_RETENTION_KEEP_DEAD = ENVIRONMENT.retention_keep_dead
MA_KEEP_ACTIVATIONS_DAYS = ENVIRONMENT.keep_activations_days
MA_KEEP_RUNS_DAYS = ENVIRONMENT.keep_runs_days
MA_KEEP_AUDIT_DAYS = ENVIRONMENT.keep_audit_days
MA_KEEP_REPLAYS_DAYS = ENVIRONMENT.keep_replays_days
MA_KEEP_ALERTS_DAYS = ENVIRONMENT.keep_alerts_days
MA_KEEP_ANSWERS_DAYS = ENVIRONMENT.keep_answers_days
MA_KEEP_DEAD_LETTERS_DAYS = ENVIRONMENT.keep_dead_letters_days
MA_KEEP_DEAD_LETTER_BODIES_DAYS = ENVIRONMENT.keep_dead_letter_bodies_days
MA_KEEP_REFUSED_DAYS = ENVIRONMENT.keep_refused_days
MA_PIPELINE = ENVIRONMENT.pipeline
MA_ARCHIVE_URL = "" if MA_PIPELINE == "off" else ENVIRONMENT.archive_url
MA_PIPELINE_MASTER = ENVIRONMENT.pipeline_master
MA_PIPELINE_SUBMIT = ENVIRONMENT.pipeline_submit
MA_PIPELINE_PROPERTIES = ENVIRONMENT.pipeline_properties
MA_PIPELINE_MEMORY_MB = ENVIRONMENT.pipeline_memory_mb
MA_PIPELINE_HOURS = ENVIRONMENT.pipeline_hours
MA_PIPELINE_AT = ENVIRONMENT.pipeline_at
MA_KEEP_PIPELINE_RUNS_DAYS = ENVIRONMENT.keep_pipeline_runs_days
MA_ARCHIVE_BODIES = ENVIRONMENT.archive_bodies
MA_PIPELINE_DRIVERS = ENVIRONMENT.pipeline_drivers
MA_REDIS_URL = ENVIRONMENT.redis_url
MA_TLS_CERT = ENVIRONMENT.tls_certificate
MA_METRICS_TOKEN = ENVIRONMENT.monitoring.token
MA_METRICS_ADDRESS = ENVIRONMENT.monitoring.address
MA_TRACE_URL = ENVIRONMENT.monitoring.trace_url
MA_BROKER_AMQP, MA_BROKER_STOMP = (
    Account(
        url,
        ENVIRONMENT.broker_user,
        ENVIRONMENT.broker_password,
        ENVIRONMENT.broker_tls,
        in_clear="broker" in ENVIRONMENT.unencrypted,
    )
    for url in (ENVIRONMENT.amqp_url, ENVIRONMENT.stomp_address)
)

INSTALLED_APPS = [
    "ma_site.apps.MaAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_filters",
    "django_tables2",
    "console",
    "agents",
    "failures",
    "dlq",
    "metrics",
    "insights",
    "alerts",
    "retention",
    "ma_site",
]

MIDDLEWARE = [
    "ma_site.requests.middleware.SecurityHeaders",
    "ma_site.requests.probes.Probes",
    "ma_site.requests.middleware.RequestId",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "ma_site.requests.middleware.RefuseUnstorableUrls",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "ma_site.requests.middleware.BodyBounds",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "ma_site.requests.middleware.DatabaseAway",
    "ma_site.requests.middleware.RequestLog",
]

ROOT_URLCONF = "ma_site.urls"
WSGI_APPLICATION = "ma_site.wsgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# -- database ------------------------------------------------------------------------------------------------
# Several processes write to SQLite: a transaction takes the write lock when it begins (no upgrade deadlock),
# and waits for it up to `timeout` seconds.
SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # FULL: a commit is on disk when it returns, for then a KMA deletes its copy and the broker its message. A
    # cache and a log that hold what a job changes again and again: each page is then written once, not every
    # time.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA busy_timeout=20000; "
    "PRAGMA cache_size=-32000; PRAGMA wal_autocheckpoint=8000;",
}
# A server whose host is gone answers nothing, not even that it is gone: without these whoever waits for it
# would wait for a quarter of an hour. Milliseconds, then seconds.
POSTGRESQL_OPTIONS = {
    "connect_timeout": 5,
    "tcp_user_timeout": 15_000,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
}
DATABASES = {"default": {**ENVIRONMENT.database, "CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}}
DATABASES["default"]["OPTIONS"] = {
    **(SQLITE_OPTIONS if "sqlite" in DATABASES["default"]["ENGINE"] else POSTGRESQL_OPTIONS),
    **ENVIRONMENT.database["OPTIONS"],
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # Tests of races need what several connections really do: a file, not one shared memory.
    DATABASES["default"]["TEST"] = {"NAME": str(ENVIRONMENT.data / "test.sqlite3")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Per process on purpose: no page and no KMA depends on Redis.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# -- people --------------------------------------------------------------------------------------------------
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

# -- e-mail --------------------------------------------------------------------------------------------------
# Without a server that takes it, targets of notices by e-mail are refused.
MA_EMAIL_READY = ENVIRONMENT.email is not None
EMAIL_TIMEOUT = 5
if ENVIRONMENT.email is not None:
    EMAIL_HOST = ENVIRONMENT.email.host
    EMAIL_PORT = ENVIRONMENT.email.port
    EMAIL_HOST_USER = ENVIRONMENT.email.user
    EMAIL_HOST_PASSWORD = ENVIRONMENT.email.password
    EMAIL_USE_TLS = ENVIRONMENT.email.security == "starttls"
    EMAIL_USE_SSL = ENVIRONMENT.email.security == "tls"
    DEFAULT_FROM_EMAIL = ENVIRONMENT.email.sender

# -- language and time ---------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("ru", _("Russian"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "ma_site.formats"

# -- files ---------------------------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATIC_ROOT = ENVIRONMENT.data / "static"
STATICFILES_DIRS = [path for path in [BASE_DIR / "static"] if path.is_dir()]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = DEBUG
# A file that is sent stays in memory: `console.rest.body_limits` bounds it before it is read, and strangers
# fill no disk.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]
FILE_UPLOAD_MAX_MEMORY_SIZE = body_limits.FILE
# Forms of the admin; the API's parsers have their own bounds (console.rest.parsing).
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5000

# -- security ------------------------------------------------------------------------------------------------
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if SECURE else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SECURE else None
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = SECURE
SESSION_COOKIE_HTTPONLY = LANGUAGE_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = LANGUAGE_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"

# -- REST ----------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["console.tokens.authentication.PersonTokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["console.rest.lists.PersonPermissions"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["console.rest.parsing.BoundedJsonParser"],
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.UserRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"user": "1200/min"},
    "DEFAULT_PAGINATION_CLASS": "console.rest.lists.Pages",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "console.rest.errors.answer",
    "DEFAULT_FILTER_BACKENDS": ["console.rest.lists.StrictFilters"],
    "PAGE_SIZE": 100,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "MA",
    "DESCRIPTION": "Launch settings, runs, failure protocols and dead letters. Bearer tokens: `ma_…` for "
    "users, `kma_…` for servers.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PUBLIC": True,
    "SERVE_PERMISSIONS": [
        "rest_framework.permissions.IsAuthenticated"
        if ENVIRONMENT.schema_signed_in
        else "rest_framework.permissions.AllowAny"
    ],
    # A browser reads the description with its session; everything else of REST takes tokens only.
    "SERVE_AUTHENTICATION": [
        "console.tokens.authentication.PersonTokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ]
    if ENVIRONMENT.schema_signed_in
    else [],
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "COMPONENT_SPLIT_REQUEST": True,
    # Where two fields of one name have other codes each.
    "ENUM_NAME_OVERRIDES": {
        "ActivationStateEnum": "agents.models.activation.ActivationState",
        "AlertStateEnum": "alerts.models.alert.AlertState",
        "ComponentStateEnum": "ma_site.pages.parts.STATES",
        "LetterStateEnum": "dlq.models.dead_letter.LetterState",
        "RunStateEnum": "agents.models.activation.RunPhase",
        "RetentionStateEnum": "retention.models.RetentionState",
        "OutcomeEnum": "failures.models.protocol.OUTCOME_CHOICES",
        "TripReasonEnum": "agents.models.trip.BreakReason",
        "WaitingPartEnum": "dlq.models.message_action.WaitingPart",
        "WarningCodeEnum": "dlq.replay.preflight.rules.CODES",
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# -- Celery --------------------------------------------------------------------------------------------------
CELERY_BROKER_URL = redis_url.parse(ENVIRONMENT.redis_url).url
# Without it kombu would take any certificate of a rediss:// server.
CELERY_BROKER_USE_SSL = dict(redis_url.parse(ENVIRONMENT.redis_url).tls) or False
CELERY_TASK_DEFAULT_QUEUE = "ma"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Every KMA has the password of Redis: whoever took one could tell this worker to take no more tasks, or to
# end.
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A send from a request must never wait for a Redis that is away; steps end long before they are given out
# again.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 1,
    "socket_timeout": 5,
    "retry_on_timeout": False,
    "visibility_timeout": 600,
    "max_retries": 0,
}
CELERY_TASK_TIME_LIMIT = 300
CELERY_TIMEZONE = "UTC"
# All entries are intervals, so that nothing has to be remembered from one start to the next.
CELERY_BEAT_SCHEDULER = "ma_site.beat.LeasedScheduler"
CELERY_BEAT_SCHEDULE = {
    "tend": {"task": "agents.tend", "schedule": schedule(5.0), "options": {"expires": 5}},
    "measure": {"task": "ma_site.measure", "schedule": schedule(5.0), "options": {"expires": 5}},
    "watch drains": {"task": "agents.watch_drains", "schedule": schedule(2.0), "options": {"expires": 2}},
    "watch subscriptions": {
        "task": "agents.watch_subscriptions",
        "schedule": schedule(10.0),
        "options": {"expires": 10},
    },
    "watch policies": {
        "task": "agents.watch_policies",
        "schedule": schedule(60.0),
        "options": {"expires": 60},
    },
    "evaluate alerts": {
        "task": "alerts.evaluate",
        "schedule": schedule(10.0),
        "options": {"expires": 10},
    },
    "send notices": {"task": "alerts.send_notices", "schedule": schedule(5.0), "options": {"expires": 5}},
    "start jobs": {"task": "console.start_jobs", "schedule": schedule(3.0), "options": {"expires": 3}},
    "empty bin": {"task": "dlq.empty_bin", "schedule": schedule(60.0), "options": {"expires": 60}},
    "end overdue outcomes": {
        "task": "dlq.end_overdue_outcomes",
        "schedule": schedule(60.0),
        "options": {"expires": 60},
    },
    "put words": {"task": "dlq.put_words", "schedule": schedule(10.0), "options": {"expires": 10}},
    "retention": {"task": "retention.run", "schedule": schedule(25.0), "options": {"expires": 25}},
    "fold failures": {"task": "failures.fold", "schedule": schedule(5.0), "options": {"expires": 5}},
    "fold figures": {"task": "metrics.fold", "schedule": schedule(5.0), "options": {"expires": 5}},
    "pack figures": {"task": "metrics.pack", "schedule": schedule(30.0), "options": {"expires": 30}},
    "sample queues": {"task": "metrics.sample", "schedule": schedule(20.0), "options": {"expires": 20}},
    "index properties": {
        "task": "failures.index_properties",
        "schedule": schedule(10.0),
        "options": {"expires": 10},
    },
    "settle archive": {"task": "insights.settle", "schedule": schedule(25.0), "options": {"expires": 25}},
    "tend pipeline": {"task": "insights.pipeline", "schedule": schedule(10.0), "options": {"expires": 10}},
}

# -- logging -------------------------------------------------------------------------------------------------
logs.configure()
LOGGING = logs.logging_settings(ENVIRONMENT.log_level)
