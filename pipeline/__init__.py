"""The data pipeline: an archive of what failed, and jobs over it, as PySpark. No Django; the session is
passed in."""
