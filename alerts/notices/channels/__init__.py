"""The form that each channel gives to a notification: pure functions from a message to requests."""

from alerts.models import Channel
from alerts.notices.channels.chat import slack, teams
from alerts.notices.channels.incidents import alertmanager, pagerduty
from alerts.notices.channels.request import Form
from alerts.notices.channels.webhooks import own_webhook, standard_webhook

FORMS: dict[str, Form] = {
    Channel.WEBHOOK: own_webhook,
    Channel.STANDARD: standard_webhook,
    Channel.SLACK: slack,
    Channel.TEAMS: teams,
    Channel.PAGERDUTY: pagerduty,
    Channel.ALERTMANAGER: alertmanager,
}
# They keep something open until it is resolved.
INCIDENTS = (Channel.PAGERDUTY, Channel.ALERTMANAGER)
# They are told that a trip has ended, and of a trip that is opened again.
TRIP_ENDS = (Channel.STANDARD, *INCIDENTS)
