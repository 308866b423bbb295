"""The archive: Parquet files that manifests name. What no manifest names does not exist for readers."""
