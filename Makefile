# Every target does its own set-up: a virtual environment in .venv, the package in place, both builds. `demo` alone
# needs none of that.
PYTHON3 ?= python3
PYTHON := .venv/bin/python
WORKERS ?= auto
CHECK_PYTHON := $(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "amqpcodec needs Python 3.11 or later")'

.DEFAULT_GOAL := help
.PHONY: help demo test test-all spec test-compat test-broker-suites test-compat-releases compat-learn test-clients test-broker interop interop-suites test-spark spark-equality test-spark-versions test-pythons test-surroundings test-pypy test-freethreaded freethreaded-suite test-debug test-slots test-dist lint types coverage mutants docs build clean

# This list: what stands above each target, up to the first full stop or colon.
help:
	@awk '/^# / { text = text substr($$0, 2); next } \
		/^[a-z][a-z-]*:/ && text { split(text, said, /[.:;]( |$$)/); sub(/:.*/, ""); printf "make %-21s%s\n", $$0, said[1] } \
		!/^[A-Z_]+ / { text = "" }' $(MAKEFILE_LIST)

# The main job on a real capture. Runs from the sources in an empty environment of its own, in seconds and without a compiler or a download.
DEMO := build/demo
demo: $(DEMO)/bin/amqpcodec
	@$(DEMO)/bin/amqpcodec decode examples/real-bunny.pcap
	@echo
	@$(DEMO)/bin/amqpcodec decode --summary examples/real-bunny.pcap
	@printf '%s\n' '' 'This is a recorded session of a client with RabbitMQ, from its TCP packets up, and what was in it.' \
		'To go on:' \
		'  $(DEMO)/bin/amqpcodec decode --summary YOUR.pcap     a capture of your own, pcap or pcapng' \
		"  $(DEMO)/bin/amqpcodec decode --method 'basic.*' --format jsonl examples/real-bunny.pcap" \
		"  pip install '.[arrow]'; amqpcodec stats YOUR.pcap     who, what, how much, how slow; compiled" \
		'  make test                                            the tests, on both builds' \
		'README.md shows the codec in Python, docs/capture.md the command.'

$(DEMO)/bin/amqpcodec:
	@$(CHECK_PYTHON)
	@$(PYTHON3) -m venv --without-pip $(DEMO)
	@echo '$(CURDIR)/src' >"$$($(DEMO)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/amqpcodec.pth"
	@printf '%s\n' '#!/bin/sh' 'exec "$(abspath $(DEMO))/bin/python" -m amqpcodec "$$@"' >$@
	@chmod +x $@

# A RabbitMQ of another version than that of the machine, where one is needed. BROKER=4.0 or BROKER=4.3 is installed once, on Debian as root.
ifdef BROKER
export AMQPCODEC_BROKER := $(BROKER)
CHOSEN := build/rabbitmq-$(BROKER)/bin/rabbitmq-server
endif
build/rabbitmq-%/bin/rabbitmq-server:
	tools/rabbitmq.sh $* build/rabbitmq-$*

# When the set-up began, which is said apart from the tests.
test test-all: export AMQPCODEC_TESTS_BEGAN := $(shell date +%s)
# Tests that draw or cut try more of the same there: tests/support/campaign.py.
test-all: export AMQPCODEC_TESTS_IN_FULL := 1

# The first tier of tests, on both builds: what a change needs. In several processes, each of which takes files of tests in turns
# (tests/support/distribution.py). WORKERS=0 makes it one; a plain `pytest PATH` is one as well, which is quicker for a few tests.
PARALLEL := --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
test: build
	@echo "Running the first tier of tests on both builds, in $(WORKERS) processes; make test-all runs both tiers"
	@$(PYTHON) -m pytest $(PARALLEL)

# Both tiers of tests: also what installs, compiles, starts a Java or a RabbitMQ, or takes long (tests/README.md says which test is where).
BOTH_TIERS := -m 'not spark and not broker and not fetches and not releases and not interop'
test-all: build .venv/stores
	@echo "Running both tiers of tests on both builds, in $(WORKERS) processes"
	@$(PYTHON) -m pytest $(BOTH_TIERS) $(PARALLEL)

# The long tests of Spark. What `make test-all` leaves out for the time it takes: most of what needs a session of Spark, clusters of
# executors, Spark Connect, workers that die. In one process, which starts a session for all.
test-spark: build .venv/stores
	$(PYTHON) -m pytest tests/spark -m spark

# Whether Spark gives the rows that the session gives. A damaged capture of BENCH_MB megabytes, in parts of several sizes, beside those made without it.
spark-equality: build
	$(PYTHON) tools/spark_equality.py --mb $(BENCH_MB) --result benchmarks/results/spark-equality.json

# All tests of Spark with other versions of PySpark. Each has a virtual environment of its own under build/.
SPARK_VERSIONS := 4.0.5 4.1.4 4.2.1
test-spark-versions: build $(SPARK_VERSIONS:%=build/pyspark-%/installed)
	set -e; for version in $(SPARK_VERSIONS); do \
		build/pyspark-$$version/bin/python -m pytest tests/spark -m 'spark or not spark'; done

build/pyspark-%/installed: pyproject.toml
	$(PYTHON3) -m venv build/pyspark-$*
	AMQPCODEC_BUILD=skip build/pyspark-$*/bin/python -m pip install -q --disable-pip-version-check -e '.[test]' pyspark==$*
	touch $@

# The pure build on PyPy. PYPY names an interpreter, which gets the test tools installed; by default one is made
# under build/, once, on Debian as root.
PYPY ?= build/pypy/bin/python3
test-pypy: $(dir $(PYPY)).tested-with
	AMQPCODEC_TEST_IMPLS=py PYTHONPATH=src $(PYPY) -m pytest -p no:cacheprovider tests/codec tests/hostile tests/capture

# The first tier of tests on every CPython that is here: 3.11 and later, also those of pyenv and of tools/other_python.sh. PYTHONS names some.
test-pythons: build
	$(PYTHON) tools/pythons.py --workers $(WORKERS) $(PYTHONS)

# The first tier of tests in other surroundings: SIGINT ignored, another TMPDIR and locale, not as root, files in random order. SURROUNDINGS names some.
test-surroundings: build
	$(PYTHON) tools/surroundings.py --workers $(WORKERS) $(SURROUNDINGS)

# Both builds on a CPython without the global lock, and how much two threads gain. FREETHREADED names an
# interpreter; by default one is made, likewise.
FREETHREADED ?= build/freethreaded/bin/python3
UNLOCKED := build/freethreaded-env/bin/python
test-freethreaded: freethreaded-suite
	$(UNLOCKED) benchmarks/scaling.py

# The same without the timings of threads.
freethreaded-suite: build/freethreaded-env/installed
	AMQPCODEC_BUILD=require $(UNLOCKED) setup.py -q build_ext --inplace
	$(UNLOCKED) -m pytest $(BOTH_TIERS) $(PARALLEL)

# The codec on a debug build of CPython. Debian has one: python3.11-dbg libpython3.11-dev.
DEBUG_PYTHON ?= python3.11-dbg
test-debug: build/debug-env/installed
	AMQPCODEC_BUILD=require CFLAGS=-UNDEBUG build/debug-env/bin/python setup.py -q build_ext --inplace
	build/debug-env/bin/python -m pytest -p no:cacheprovider tests/codec

# The codec with the slots of types left as Cython makes them. docs/slots.md says what that leaves out.
test-slots: build
	AMQPCODEC_SLOTS=0 $(PYTHON) -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder tests/codec tests/hostile tests/compat

build/debug-env/installed: pyproject.toml
	$(DEBUG_PYTHON) -m venv $(@D)
	build/debug-env/bin/python -m pip install -q --disable-pip-version-check 'cython>=3.3' 'setuptools>=77' pytest 'hypothesis<6.140'
	AMQPCODEC_BUILD=skip build/debug-env/bin/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $@

build/pypy/bin/python3 build/freethreaded/bin/python3:
	tools/other_python.sh $(word 2,$(subst /, ,$@)) $(@D:%/bin=%)

# Hypothesis has native code since 6.140, of which there is no wheel for either. What else has none is named, and its
# tests are skipped.
$(dir $(PYPY)).tested-with: | $(PYPY)
	$(PYPY) -m pip install -q --disable-pip-version-check pytest 'hypothesis<6.140' dpkt scapy
	touch $@

build/freethreaded-env/installed: pyproject.toml | $(FREETHREADED)
	$(FREETHREADED) -m venv --system-site-packages $(@D)
	$(UNLOCKED) -m pip install -q --disable-pip-version-check 'cython>=3.3' 'setuptools>=77' pytest pytest-xdist 'hypothesis<6.140'
	AMQPCODEC_BUILD=skip $(UNLOCKED) -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps -e .
	for name in dpkt scapy rich pyarrow polars duckdb pandas plotly zstandard trustme lunr amqpstorm rabbitpy aio-pika celery; do \
		$(UNLOCKED) -m pip install -q --disable-pip-version-check --only-binary :all: $$name 2>/dev/null || \
		echo "$$name cannot be had for this interpreter: its tests are skipped"; done
	touch $@

# The archives in dist/, as `python -m build` left them. They are installed into empty environments and tested there.
test-dist:
	$(PYTHON3) tools/check_dist.py

# The suites of pamqp, py-amqp and their clients, without and with acceleration. They come from source
# distributions; our own tests that fetch other releases run as well, and instrumentations of clients. SUITES names some of tests/suites/__main__.py; all by default.
# BROKER=4.3 has the live ones run at that RabbitMQ.
test-compat: build build/suites/installed $(CHOSEN)
	$(PYTHON) -m pytest tests/compat -m fetches
	PYTHONPATH=tests build/suites/venv/bin/python -m suites.instrumented
	PYTHONPATH=tests build/suites/venv/bin/python -m suites $(SUITES)

# Suites of clients at the broker for tests. Prints which tests pass at a RabbitMQ and not there; more than a tenth of a suite is a failure.
test-broker-suites: build build/suites/installed $(CHOSEN)
	PYTHONPATH=tests build/suites/venv/bin/python -m suites.on_test_broker $(SUITES)

# Every release of other libraries that is met. The last ten of each, and those of Debian 12: the differential, and a program at a RabbitMQ.
test-compat-releases: build
	$(PYTHON) -m pytest tests/compat -m releases -rP

# What is known of a release of pamqp, pika, py-amqp or a client: VERSION=pika==1.4.4. What is new goes by RULES, if they are given.
compat-learn: build
	PYTHONPATH=tests $(PYTHON) -m support.compat.learn $(if $(RULES),--rules $(RULES)) $(VERSION)

build/suites/installed: pyproject.toml
	$(PYTHON3) -m venv build/suites/venv
	AMQPCODEC_BUILD=skip build/suites/venv/bin/python -m pip install -q --disable-pip-version-check -e '.[suites]'
	touch $@

# Whole clients at a RabbitMQ, without and with acceleration. CLIENT_MESSAGES messages each; `make test-all` has one client send a few.
CLIENT_MESSAGES ?= 50000
test-clients: build $(CHOSEN)
	AMQPCODEC_CLIENT_MESSAGES=$(CLIENT_MESSAGES) $(PYTHON) -m pytest tests/clients -m "broker or not broker" -rP

# The client, the examples, recordings and the broker for tests at a RabbitMQ. BROKER_MESSAGES messages, while connections are cut and the
# node is killed, BROKER_KILLS times. BROKER=4.3 takes that version.
BROKER_MESSAGES ?= 100000
BROKER_KILLS ?= 20
test-broker: build $(CHOSEN)
	AMQPCODEC_BROKER_MESSAGES=$(BROKER_MESSAGES) AMQPCODEC_BROKER_KILLS=$(BROKER_KILLS) $(PYTHON) -m pytest tests/examples tests/record \
		tests/aio/test_client_rabbitmq.py tests/aio/test_client_at_length.py tests/testing/test_probes.py -m "broker or not broker"

# Brokers and clients that others wrote, in every dialect. Prints the tables of docs/interoperability.md; it fails where that page has others.
interop: build
	PYTHONPATH=tests:tools $(PYTHON) -m interop

# The suites of other clients, of four languages, at the broker for tests. Prints which tests pass at a RabbitMQ and not there; more than a tenth is a failure.
interop-suites: build
	PYTHONPATH=tests:tools $(PYTHON) -m interop.suites

# Style, types, and whether the generated files are those of the specifications.
lint: types
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	PATH="$(CURDIR)/.venv/bin:$$PATH" cython-lint src/amqpcodec
	.venv/bin/codespell
	.venv/bin/zizmor --offline --quiet .github
	$(PYTHON) tools/gen_codec.py --check

# Whether the types are right. Of the sources; beside what each build is at run time (tools/types has the exceptions);
# in programs that use every public name of the installed package, with mypy and pyright (tests/api).
types: build
	$(PYTHON) -m mypy
	$(PYTHON) tools/check_types.py
	$(PYTHON) tools/check_samples.py

# Which lines of Python and of Cython the tests run. One table, and the lines in build/coverage/html. The modules are compiled again, with
# counters, in build/coverage.
coverage: build
	$(PYTHON) tools/line_coverage.py --workers $(WORKERS)

# What the tests do not see. Changes COUNT places of the package that SEED draws, one at a time, in copies, and prints the changes that no
# test notices. The first run records which test runs which line.
SEED ?= 1
COUNT ?= 60
mutants: build
	$(PYTHON) tools/mutants.py $(SEED) $(COUNT) $(WORKERS:auto=$(shell getconf _NPROCESSORS_ONLN))

# The site of the documentation, in build/site. Its pages work without a server; DOCS_URL is where they will be published.
DOCS := build/docs
docs: $(DOCS)/installed $(DOCS)/scripts/installed
	AMQPCODEC_IMPL=py NO_MKDOCS_2_WARNING=1 PYTHONPATH=tools $(DOCS)/bin/python -m mkdocs build --strict --quiet
	@echo "The site is build/site/index.html"

$(DOCS)/installed: pyproject.toml
	@$(CHECK_PYTHON)
	$(PYTHON3) -m venv $(DOCS)
	AMQPCODEC_BUILD=skip $(DOCS)/bin/python -m pip install -q --disable-pip-version-check -e '.[docs]'
	touch $@

# What draws the diagrams and lets the search work without a server. Where there is no npm, diagrams are shown as text.
$(DOCS)/scripts/installed: | $(DOCS)/installed
	mkdir -p $(@D)
	cd $(@D) && tar xzOf "$$(npm pack --silent mermaid@11)" package/dist/mermaid.min.js >mermaid.min.js && \
		tar xzOf "$$(npm pack --silent iframe-worker@1)" package/shim/index.js >iframe-worker.js || \
		{ rm -f *.js; echo "npm cannot fetch what draws diagrams: they are shown as text"; }
	rm -f $(@D)/*.tgz
	touch $@

# What follows from a change of spec/, and what is missing. Writes the generated files, compiles them, and runs the tests that have the facts
# a second time. Each failure names the file that is to say the same.
spec: .venv/installed
	$(PYTHON) tools/gen_codec.py
	@$(MAKE) build
	$(PYTHON) -m pytest -q tests/generator/test_spec_facts.py tests/generator/test_generated_files.py tests/codec/test_vectors.py \
		tests/compat/test_peer_facts.py

# Compiles what has changed; a missing compiler is an error here, since the tests run both builds.
build: build/compiled

# Where no source is newer than the last time, Cython and the compiler are not asked.
SOURCES := setup.py $(shell find src -name '*.py' -o -name '*.pyx' -o -name '*.pxd')
build/compiled: .venv/installed $(SOURCES)
	@echo "Compiling what has changed; all of it takes three minutes of CPU, on all cores, and warnings of the compiler are shown"
	@mkdir -p $(@D) && touch $@.begun
	@AMQPCODEC_BUILD=require $(PYTHON) setup.py -q build_ext --inplace
	@mv $@.begun $@

.venv/installed: pyproject.toml
	@$(CHECK_PYTHON)
	@echo "Installing what the tests need into .venv: about 1.5 GB the first time, with PySpark and a Java; minutes"
	@$(PYTHON3) -m venv .venv
	@AMQPCODEC_BUILD=skip $(PYTHON) -m pip install -q --disable-pip-version-check -e '.[cli,test,lint,clients]'
	@touch $@

# The libraries that the benchmarks compare with.
.venv/bench: .venv/installed
	AMQPCODEC_BUILD=skip $(PYTHON) -m pip install -q --disable-pip-version-check -e '.[bench]'
	touch $@

# An object store, for tests of Spark.
.venv/stores: .venv/installed
	AMQPCODEC_BUILD=skip $(PYTHON) -m pip install -q --disable-pip-version-check -e '.[stores]'
	touch $@

# What fuzzing needs; clang itself is not to be had from a package index.
.venv/fuzz: .venv/installed
	AMQPCODEC_BUILD=skip $(PYTHON) -m pip install -q --disable-pip-version-check -e '.[fuzz]'
	touch $@

# Removes all that was built or installed here.
clean:
	rm -rf .venv build src/*.egg-info
	find src -name '*.so' -delete
	rm -f src/amqpcodec/not-compiled.txt

include benchmarks/bench.mk
bench bench-ci bench-ci-accept bench-c bench-client-layer bench-client-peers bench-clients bench-connections bench-brokers bench-columnar bench-interpreters bench-spark bench-spark-memory bench-guard bench-guard-accept bench-peers bench-profile bench-budgets bench-report: build .venv/bench
bench-against: build
bench-build: .venv/installed

include fuzz/fuzz.mk
fuzz-long test-asan lint-c leaks soak: build
fuzz fuzz-all fuzz-campaign: build .venv/fuzz
