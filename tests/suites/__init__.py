"""Test suites of peers and their clients, unmodified, without and with acceleration: `make test-compat`."""
