"""The one Spark session of an application, with what every job relies on. Nothing else makes one."""

import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

# What jobs rely on: instants are UTC in memory and in files, and a plan is changed by what was seen while it
# runs.
ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    # Files are named one by one: looking at some hundred of them takes less than a job that does so.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    # A file that cannot be read is told of by its name, never left out in silence
    # (`pipeline.archive.quarantine`).
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # A stale _SUCCESS proves nothing: a manifest does.
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
# An instant of the database's driver is read in the zone of its JVM, also by the executors.
JAVA_UTC = "-Duser.timezone=UTC"


def build(
    master: str | None = None,
    *,
    name: str = "pipeline",
    memory: str | None = None,
    settings: Mapping[str, str] = {},
) -> SparkSession:
    """`master` None: as `spark-submit` was told, which also decides on the memory of a driver that runs
    already. `memory`: of the JVM in local mode, as Spark writes it (2g). Raises what Spark raises."""
    builder = SparkSession.Builder().appName(name)
    if master is not None:
        builder = builder.master(master)
    if memory is not None:
        builder = builder.config("spark.driver.memory", memory)
    builder = builder.config("spark.driver.extraJavaOptions", JAVA_UTC)
    builder = builder.config("spark.executor.extraJavaOptions", JAVA_UTC)
    # Else workers start the system's python3.
    builder = builder.config("spark.pyspark.python", sys.executable)
    for key, value in {**ALWAYS, **settings}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


PARTS, UNSAID, LEAST_PARTS = "spark.sql.shuffle.partitions", "200", 16


def fitted(session: SparkSession) -> SparkSession:
    """As many parts of a shuffle as the cores can use, where nobody said otherwise: most shuffles are small,
    and each part of one costs a task."""
    if session.conf.get(PARTS) == UNSAID:
        session.conf.set(PARTS, str(max(LEAST_PARTS, 4 * session.sparkContext.defaultParallelism)))
    # What is kept for several results is spread over as few parts as it fills.
    session.conf.set("spark.sql.optimizer.canChangeCachedPlanOutputPartitioning", "true")
    return session
