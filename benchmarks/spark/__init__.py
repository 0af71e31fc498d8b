"""Captures through Spark: `make bench-spark`, `make bench-spark-memory`."""
