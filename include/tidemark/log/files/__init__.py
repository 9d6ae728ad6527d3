"""The log's files: a folder of immutable Parquet files, read and verified."""
