# Every target does its own set-up: a virtual environment in .venv, the package in place, both builds.
PYTHON3 ?= python3
PYTHON := .venv/bin/python
WORKERS ?= auto

.PHONY: demo test test-spark test-spark-versions lint build clean

demo: build
	$(PYTHON) -m amqpcodec decode examples/real-bunny.pcap

# In several processes, each of which takes files of tests in turns (tests/support/distribution.py). WORKERS=0
# makes it one; a plain `pytest PATH` is one as well, which is quicker for a few tests.
test: build
	$(PYTHON) -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

# What `make test` leaves out for the time it takes: most of what needs a session of Spark, clusters of
# executors, Spark Connect, workers that die. In one process, which starts a session for all.
test-spark: build
	$(PYTHON) -m pytest tests/spark -m spark

# All tests of Spark with other versions of PySpark, each in a virtual environment of its own under build/.
SPARK_VERSIONS := 4.0.5 4.1.4 4.2.1
test-spark-versions: build $(SPARK_VERSIONS:%=build/pyspark-%/installed)
	set -e; for version in $(SPARK_VERSIONS); do \
		build/pyspark-$$version/bin/python -m pytest tests/spark -m 'spark or not spark'; done

build/pyspark-%/installed: pyproject.toml
	$(PYTHON3) -m venv build/pyspark-$*
	AMQPCODEC_BUILD=skip build/pyspark-$*/bin/python -m pip install -q --disable-pip-version-check -e '.[test]' pyspark==$*
	touch $@

lint: build
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) tools/gen_codec.py --check

# Compiles what has changed; a missing compiler is an error here, since the tests run both builds.
build: .venv/installed
	AMQPCODEC_BUILD=require $(PYTHON) setup.py -q build_ext --inplace

.venv/installed: pyproject.toml
	$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "amqpcodec needs Python 3.11 or later")'
	$(PYTHON3) -m venv .venv
	AMQPCODEC_BUILD=skip $(PYTHON) -m pip install -q --disable-pip-version-check -e '.[cli,test,lint]'
	touch $@

# The libraries that the benchmarks compare with.
.venv/bench: .venv/installed
	AMQPCODEC_BUILD=skip $(PYTHON) -m pip install -q --disable-pip-version-check -e '.[bench]'
	touch $@

# What fuzzing needs; clang itself is not to be had from a package index.
.venv/fuzz: .venv/installed
	AMQPCODEC_BUILD=skip $(PYTHON) -m pip install -q --disable-pip-version-check -e '.[fuzz]'
	touch $@

clean:
	rm -rf .venv build src/*.egg-info
	find src -name '*.so' -delete

include benchmarks/bench.mk
bench bench-c bench-columnar bench-spark bench-spark-memory spark-equality bench-guard bench-guard-accept bench-peers bench-profile bench-wheel bench-report: build .venv/bench

include fuzz/fuzz.mk
fuzz-long test-asan lint-c leaks soak: build
fuzz fuzz-all: build .venv/fuzz
