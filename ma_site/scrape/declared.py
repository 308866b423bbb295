"""Every metric of the site's processes. Names, labels and what they mean never change: alert rules outside
rest on them. tests/architecture/approved/metrics.txt has them all."""

from dlq.index.feed import OF_FEED
from exposition.declared import Declared, Kind, counter, gauge

# Label values that a scrape shows at most; the rest is counted in `ma_label_values_left_out`.
MOST_SETTINGS, MOST_SERVERS, MOST_RUNS = 1000, 200, 10_000

OF_SITE = (
    gauge("ma_build_info", "Always 1; the version of the MA.", "version"),
    gauge("ma_database_up", "1 if the database answered; else rows are as old as ma_rows_age_seconds."),
    gauge("ma_rows_age_seconds", "Age of what was read from the database."),
    gauge("ma_rows_read_seconds", "How long reading the rows took."),
    gauge("ma_label_values_left_out", "Label values above the limit, which no series shows.", "label"),
    gauge("ma_component_up", "1 if the component answered the last measurement of the worker.", "component"),
    gauge("ma_component_measured_age_seconds", "Time since the worker measured the component.", "component"),
    gauge(
        "ma_process_heartbeat_age_seconds",
        "Time since the last heartbeat of a process of the site.",
        "process",
    ),
    gauge("ma_setting_info", "Always 1; what the setting is.", "setting", "kind", "timing", "spread", "pool"),
    gauge("ma_setting_enabled", "1 if the setting is enabled.", "setting"),
    gauge(
        "ma_setting_tripped",
        "1 if the breaker disabled the setting and nobody has enabled it since.",
        "setting",
    ),
    gauge("ma_setting_provisioned", "1 if the setting is on the broker as it should be.", "setting"),
    gauge(
        "ma_subscription_messages", "Messages in the subscription, by the broker's count.", "setting", "state"
    ),
    gauge("ma_subscription_consumers", "Consumers of the subscription, by the broker's count.", "setting"),
    gauge("ma_dead_letters", "Dead letters of the setting, by the broker's count.", "setting"),
    gauge("ma_broker_counts_age_seconds", "Age of the oldest of the broker's counts."),
    gauge("ma_index_lag_messages", "Dead letters that the index does not know yet."),
    gauge("ma_setting_runs", "Open instances of the setting.", "setting", "state"),
    gauge("ma_run_connected", "1 if the instance has a link to the broker.", "setting", "server"),
    gauge("ma_run_in_progress", "Messages that the instance holds.", "setting", "server"),
    counter("ma_run_handled_total", "Messages processed since the instance began.", "setting", "server"),
    counter(
        "ma_run_failed_total",
        "Failures stored since the instance began, without temporary ones.",
        "setting",
        "server",
    ),
    counter(
        "ma_run_temporary_total", "Temporary failures stored since the instance began.", "setting", "server"
    ),
    counter(
        "ma_run_recovered_total",
        "Messages processed after a failure, since the instance began.",
        "setting",
        "server",
    ),
    gauge(
        "ma_server_info",
        "Always 1; what runs on the server, and its scheduling.",
        "server",
        "version",
        "duty",
    ),
    gauge("ma_server_up", "1 if the server was heard lately.", "server"),
    gauge("ma_server_obeys", "1 if the server is heard and takes what it is sent.", "server"),
    gauge("ma_server_heartbeat_age_seconds", "Time since the server was heard.", "server"),
    gauge("ma_server_clock_skew_seconds", "Clock of the server minus clock of the MA.", "server"),
    gauge("ma_spool_records", "Records that the server has not sent yet.", "server"),
    gauge("ma_spool_bytes", "Bytes of the server's spool.", "server"),
    gauge("ma_spool_limit_bytes", "Limit of the server's spool.", "server"),
    gauge("ma_spool_full", "1 if the server takes no messages because its spool is full.", "server"),
    counter("ma_intake_records_total", "Records of the server that were stored or refused.", "server"),
    counter("ma_intake_refused_records_total", "Records of the server that were set aside.", "server"),
    counter("ma_intake_missing_records_total", "Records of the server that never came.", "server"),
    gauge("ma_alerts_open", "Open alerts, snoozed ones too.", "kind", "severity"),
    gauge("ma_notices_pending", "Notifications that wait to be sent."),
    gauge("ma_replay_jobs", "Replays that are not finished.", "state"),
    gauge("ma_pipeline_last_success_age_seconds", "Time since a pipeline run ended well."),
)

TASK_SECONDS = Declared(
    "ma_task_seconds",
    Kind.HISTOGRAM,
    "How long tasks of the worker took.",
    ("task",),
    (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
)
OF_WORKER = (
    counter("ma_tasks_total", "Tasks that the worker ended, since it started.", "task", "result"),
    TASK_SECONDS,
)

# By the process that answers them.
DECLARED = {"site": OF_SITE, "feed": OF_FEED, "worker": OF_WORKER}
