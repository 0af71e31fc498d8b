"""``python -m amqpcodec.bench``: times the codec on octets of your own, and compares two such runs.

Times are compared beside a yardstick: what other libraries, or a loop of the standard library, needed for
the same octets in the same run. A slow machine is slow for both. Runs are JSON in the form of
pytest-benchmark. docs/benchmarks.md shows the use; ``--help`` lists the options.
"""
