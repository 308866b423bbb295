"""Takes pictures of the pages of a site that runs: `python -m tests.browser.look FOLDER [--fill] [--only
NAME] …`.

The environment is the site's; `--fill` makes the rows of tests/web/factories.py first.
"""

import argparse
import os
from pathlib import Path

import django
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ma_site.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.test import Client  # noqa: E402

from agents.models import BreakerTrip, LaunchSetting, Pool, ScheduledGroup, Server  # noqa: E402
from alerts.models import Alert  # noqa: E402
from dlq.models import DeadLetter, ReplayJob  # noqa: E402
from failures.models import FailureProtocol  # noqa: E402
from insights.models import PipelineRun  # noqa: E402
from tests.browser.driver import Browser  # noqa: E402
from tests.web.factories import make_world  # noqa: E402


def pages() -> dict[str, str]:
    letters = DeadLetter.objects.order_by("pk")
    hostile = FailureProtocol.objects.filter(exception_type="ValueError").first()
    protocol = FailureProtocol.objects.filter(exception_type="KeyError").first()
    job = ReplayJob.objects.first()
    trip, group = BreakerTrip.objects.first(), ScheduledGroup.objects.first()
    pool = Pool.objects.order_by("name").first()
    server = Server.objects.order_by("name").first()
    setting = protocol.setting_key if protocol else "none"
    found = {
        "overview": "/",
        "settings": "/settings/",
        "setting": f"/settings/{setting}/",
        "setting-failed": "/settings/prices-import/",
        "waiting": f"/settings/{setting}/waiting/",
        "switch": f"/settings/{setting}/disable/",
        "what-if": f"/settings/{setting}/what-if/?m=6",
        "freezes": "/freezes/",
        "freeze": "/site/1/",
        "bulk": "/bulk/settings/disable/",
        "activations": "/activations/",
        "alerts": "/alerts/",
        "alert-rules": "/alerts/alertrule/",
        "fingerprints": "/fingerprints/",
        "trips": "/trips/",
        "groups": "/groups/",
        "form": "/agents/launchsetting/add/",
        "destinations": "/destinations/",
        "notices": "/notices/",
        "notice-targets": "/alerts/noticetarget/",
        "notice-target": "/alerts/noticetarget/add/",
        "pool": f"/agents/pool/{pool.pk}/change/" if pool else "/agents/pool/add/",
        "servers": "/servers/",
        "server": f"/servers/{server}/",
        "cordon": f"/servers/{server}/cordon/",
        "protocols": "/protocols/",
        "dead-letters": "/dead-letters/",
        "letters": f"/dead-letters/{setting}/",
        "letters-every": f"/dead-letters/{setting}/?state=every",
        "all-letters": "/letters/",
        "letter-groups": f"/dead-letters/{setting}/groups/",
        "all-groups": "/letters/groups/",
        "bin": "/dead-letters/bin/",
        "unknown": "/dead-letters/unknown/",
        "foreign": "/foreign-queues/",
        "saved-filters": "/saved-filters/",
        "audit": "/audit/",
        "redirect": f"/dead-letters/{setting}/redirect/?all=1",
        "discard": f"/dead-letters/{setting}/discard/?all=1",
        "give-back": f"/dead-letters/{setting}/give-back/?all=1",
        "edit-rule": f"/dead-letters/{setting}/edit/?all=1",
        "import": f"/dead-letters/{setting}/import/",
        "replays": "/replays/",
        "insights": "/insights/",
        "insights-table": "/insights/tables/activation_health/",
        "health": "/health/",
        "retention": "/retention/",
        "records": "/records/",
        "docs": "/api/v1/docs/",
    }
    if protocol:
        found["fingerprint"] = f"/fingerprint/?of={protocol.fingerprint}"
        found["protocol"] = f"/protocols/{protocol.pk}/"
        found["activation"] = f"/activations/{protocol.activation_uuid}/"
        found["case"] = f"/cases/?key={protocol.message_key}&setting={protocol.setting_key}"
    if run := PipelineRun.objects.first():
        found["pipeline-run"] = f"/insights/runs/{run.pk}/"
    if trip:
        found["trip"] = f"/trips/{trip.pk}/"
        found["setting-tripped"] = f"/settings/{trip.setting.key}/"
        found["switch-on"] = f"/settings/{trip.setting.key}/enable/"
    if alert := Alert.objects.order_by("pk").first():
        found["alert"] = f"/alerts/{alert.pk}/"
        found["alert-snooze"] = f"/alerts/{alert.pk}/snooze/"
    if group:
        found["group"] = f"/groups/{group.name}/"
        found["group-off"] = f"/groups/{group.name}/disable/"
    if delayed := LaunchSetting.objects.filter(timing="DELAYED").first():
        found["setting-delayed"] = f"/settings/{delayed.key}/"
    if hostile:
        found["hostile"] = f"/protocols/{hostile.pk}/"
    if first := letters.first():
        found["letter"] = f"/letters/{first.pk}/"
        found["edit"] = f"/letters/{first.pk}/edit/"
    if binary := letters.filter(body_kind="data").first():
        found["bytes"] = f"/letters/{binary.pk}/"
    if job:
        found["replay"] = f"/replays/{job.pk}/"
        found["replay-cancel"] = f"/replays/{job.pk}/cancel/"
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fill", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--user", default="chief")
    parser.add_argument("--language", default="en")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--height", type=int, default=1000)
    parser.add_argument("--whole", action="store_true")
    options = parser.parse_args()
    if options.fill:
        make_world()
    options.folder.mkdir(parents=True, exist_ok=True)
    client = Client()
    client.force_login(User.objects.get(username=options.user))
    with Browser(width=options.width, height=options.height) as browser:
        browser.open(f"{settings.MA_BASE_URL}/login/")
        browser.run(
            "localStorage.setItem('theme', arguments[0]); localStorage.setItem('ma.paused', '1')",
            options.theme,
        )
        browser.cookie(settings.LANGUAGE_COOKIE_NAME, options.language)
        if not options.only or "login" in options.only:
            browser.open(f"{settings.MA_BASE_URL}/login/")
            browser.picture(options.folder / "login.png")
        browser.cookie(settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value)
        for name, path in pages().items():
            if options.only and name not in options.only:
                continue
            browser.resize(options.width, options.height)
            browser.open(settings.MA_BASE_URL + path)
            browser.picture(options.folder / f"{name}.png", whole=options.whole)
            wide = browser.run(
                "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            print(
                name,
                path,
                f"{wide} px too wide" if wide > 0 else "",
                *[entry["message"] for entry in browser.log()],
            )


if __name__ == "__main__":
    main()
