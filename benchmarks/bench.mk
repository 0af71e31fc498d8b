# Benchmarks. $(PYTHON) has the package and its `bench` extra; results are stored under benchmarks/results.
# BENCH_OPTIONS is handed to pytest: `make bench BENCH_OPTIONS="-k publish"`.

BENCH_PYAMQP_CYTHON ?= build/bench/pyamqp-cython
BENCH_BUILDER := build/bench/builder
export BENCH_PYAMQP_CYTHON

.PHONY: bench bench-against bench-ci bench-ci-accept bench-c bench-client-layer bench-client-peers bench-clients bench-connections bench-brokers bench-columnar bench-interpreters bench-spark bench-spark-memory bench-steps bench-report bench-guard bench-guard-accept bench-peers bench-profile bench-recording bench-budgets bench-build

# The codec beside other libraries. All in one process and one run; what is missing is named at the end. The shortest
# time of BENCH_RUNS runs is stored, item by item.
BENCH_RUNS ?= 3
bench:
	@mkdir -p build
	for run in $$(seq $(BENCH_RUNS)); do \
		$(PYTHON) -m pytest -c benchmarks/pytest.ini benchmarks --benchmark-json=build/bench-$$run.json \
			--benchmark-max-time=0.3 $(BENCH_OPTIONS) || exit; done
	$(PYTHON) benchmarks/results.py $$(seq -f build/bench-%g.json $(BENCH_RUNS))

# Whether a change made the codec slower. By ratios to other libraries and by instructions, beside stored baselines. Writes
# build/bench-ci.md; two minutes.
bench-ci:
	$(PYTHON) benchmarks/ci.py

# This checkout beside the revision BASE, item by item. Both are compiled and measured here, in pairs of processes; writes
# build/bench-against.md. BENCH_OPTIONS="--item forward --pairs 15" measures some items more often, and `--instructions` counts as well.
bench-against:
	$(PYTHON) benchmarks/against.py $(if $(BASE),$(BASE),$(error BASE=<revision> says what to compare with)) $(BENCH_OPTIONS)

# Stores the ratios measured now as the baseline. A quiet machine: `make bench-ci-accept PYTHON="chrt -f 20 taskset -c 1 .venv/bin/python"`.
bench-ci-accept:
	$(PYTHON) benchmarks/ci.py --accept

# rabbitmq-c beside the compiled build.
bench-c:
	$(PYTHON) benchmarks/anchor.py

# One codec on several interpreters; each has the package compiled in place, or serves itself with the pure build.
BENCH_INTERPRETERS ?= $(PYTHON) $(UNLOCKED) $(PYPY)
bench-interpreters:
	$(PYTHON) benchmarks/interpreters.py $(BENCH_INTERPRETERS)

# A proxy that records beside a plain one. CPU of a message.
bench-recording:
	$(PYTHON) benchmarks/recording.py

# Columns and captures. Columns beside rabbitmq-c and the object path, captures of BENCH_MB megabytes beside tshark.
BENCH_MB ?= 1000
BENCH_MEMORY_MB ?= 4000
bench-columnar:
	$(PYTHON) benchmarks/columnar.py --mb $(BENCH_MB) --memory-mb $(BENCH_MEMORY_MB)

# Codec calls and whole clients, without and with acceleration. At a RabbitMQ of their own.
BENCH_CLIENT_MESSAGES ?= 10000
BENCH_CLIENT_ROUNDS ?= 7
bench-clients:
	$(PYTHON) benchmarks/clients.py --messages $(BENCH_CLIENT_MESSAGES) --rounds $(BENCH_CLIENT_ROUNDS)

# `aio.Client` beside other clients, the floor of asyncio, and rabbitmq-c. At a RabbitMQ of their own; what is missing
# is named. Then the memory of a client after a million messages.
BENCH_LAYER_MESSAGES ?= 20000
BENCH_LAYER_ROUNDS ?= 6
BENCH_MEMORY_MESSAGES ?= 1000000
BENCH_CLIENTS := build/bench/clients
bench-client-layer:
	$(PYTHON) benchmarks/client_layer.py --messages $(BENCH_LAYER_MESSAGES) --rounds $(BENCH_LAYER_ROUNDS)
	$(PYTHON) benchmarks/client_layer.py --memory $(BENCH_MEMORY_MESSAGES)

# Node's amqplib, and uvloop, in a folder of their own.
bench-client-peers:
	@mkdir -p $(BENCH_CLIENTS)
	$(PYTHON) -m pip install -q --upgrade --target $(BENCH_CLIENTS)/python uvloop
	npm install --no-audit --no-fund --prefix $(BENCH_CLIENTS) amqplib

# Messages through connections, in one process and without sockets: ours, aiormq's, pika's and py-amqp's.
bench-connections:
	$(PYTHON) benchmarks/connections.py

# The broker for tests: how fast it starts, how much it passes on, and beside RabbitMQ. With the client of the examples.
bench-brokers:
	$(PYTHON) benchmarks/brokers.py

# Captures through Spark, beside the same jobs with nothing to decode; BENCH_SPARK_MB megabytes, four times.
BENCH_SPARK_MB ?= 500
bench-spark:
	PYTHONPATH=benchmarks $(PYTHON) -m spark.pipeline --mb $(BENCH_SPARK_MB)

# Memory of workers of Spark. A capture of BENCH_MEMORY_MB megabytes goes through workers of Spark with 500 MB of address space.
bench-spark-memory:
	PYTHONPATH=benchmarks $(PYTHON) -m spark.memory --mb $(BENCH_MEMORY_MB)

# A capture step by step, in CPU time: reading, packets, frames, columns; and on Spark, with the JVM's share.
bench-steps:
	$(PYTHON) benchmarks/steps.py

# docs/benchmarks.md and docs/benchmarks.svg from the stored results.
bench-report:
	$(PYTHON) benchmarks/report.py

# Where the instructions of some work items go, for the report.
bench-profile:
	$(PYTHON) benchmarks/profiles.py

# Instructions per operation against the stored baseline: benchmarks/guard-baseline.json.
bench-guard:
	$(PYTHON) benchmarks/guard.py

# Stores the instructions counted now as the baseline.
bench-guard-accept:
	$(PYTHON) benchmarks/guard.py --accept

# py-amqp compiled by Cython, in a folder of its own; its build needs an old setuptools.
bench-peers:
	$(PYTHON) -m venv $(BENCH_BUILDER)
	$(BENCH_BUILDER)/bin/python -m pip install -q 'setuptools<72' wheel cython
	CELERY_ENABLE_SPEEDUPS=1 $(BENCH_BUILDER)/bin/python -m pip install -q --upgrade --no-binary amqp \
		--no-build-isolation --target $(BENCH_PYAMQP_CYTHON) amqp

# What the package costs besides time, against benchmarks/budgets.toml: lines, sizes, memory, import, build.
bench-budgets:
	$(PYTHON) benchmarks/budgets.py

# A build from scratch alone, of what is committed: seconds of CPU and of the clock, octets of C, of the wheel and installed.
bench-build:
	$(PYTHON) benchmarks/budgets.py build
