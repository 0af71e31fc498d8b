# Hostile octets: fuzzing, sanitizers, leaks, soak. Figures are stored in fuzz/*.json; fuzz-report writes them
# into docs/reliability.md.
#
#     make fuzz TARGET=tables SECONDS=60        one target: stream, amqp08, qpid08, amqp09, amqp091, rabbitmq,
#                                               tables, encoder, capture, columns, values, batches, session,
#                                               connection, broker
#     make fuzz-all SECONDS=1200 JOBS=2         every target for that long, JOBS at a time
#     make fuzz-campaign EXECUTIONS=10000000    on with the campaign, to so many executions of all targets

TARGET ?= stream
SECONDS ?= 60
JOBS ?= 1
FRAMES ?= 10000000
MINUTES ?= 60
EXAMPLES ?= 500
EXECUTIONS ?= 10000000
FUZZ_PATH := src:tests:fuzz
# Tests that take what AMQPCODEC_FUZZ_EXAMPLES asks for (tests/support/campaign.py).
CAMPAIGNS = $(shell grep -rl --include="*.py" "from support.campaign import" tests)

.PHONY: fuzz fuzz-all fuzz-campaign fuzz-long fuzz-report test-asan lint-c leaks soak

# Fuzzes one target: TARGET, for SECONDS.
fuzz:
	$(PYTHON) fuzz/campaign.py --seconds $(SECONDS) $(TARGET)

# Fuzzes all targets: SECONDS each, JOBS at a time.
fuzz-all:
	$(PYTHON) fuzz/campaign.py --seconds $(SECONDS) --jobs $(JOBS) all

# Goes on with the campaign of all targets. Until there have been EXECUTIONS, in runs of SECONDS; it may be stopped and goes on where it was.
fuzz-campaign: SECONDS = 600
fuzz-campaign:
	$(PYTHON) fuzz/campaign.py --seconds $(SECONDS) --until $(EXECUTIONS) all

# The tests of which `make test-all` tries a share. EXAMPLES of each, most of them chosen anew, and every place of damage and interrupts.
fuzz-long:
	AMQPCODEC_FUZZ_EXAMPLES=$(EXAMPLES) $(PYTHON) -m pytest $(BOTH_TIERS) $(CAMPAIGNS)

# docs/reliability.md from the stored figures.
fuzz-report:
	$(PYTHON) fuzz/report.py

# The whole test suite with the sanitizers of addresses and undefined behaviour.
test-asan:
	$(PYTHON) fuzz/asan.py $(BOTH_TIERS)

# The C of the kernel with every warning on; warnings of Cython are errors as well.
lint-c:
	$(PYTHON) fuzz/lint_c.py

# Looks for leaks: FRAMES frames through each build.
leaks:
	PYTHONPATH=$(FUZZ_PATH) $(PYTHON) fuzz/leaks.py --frames $(FRAMES) --impl c
	PYTHONPATH=$(FUZZ_PATH) $(PYTHON) fuzz/leaks.py --frames $(FRAMES) --impl py

# Decodes and encodes damaged octets for MINUTES.
soak:
	PYTHONPATH=$(FUZZ_PATH) $(PYTHON) fuzz/soak.py --minutes $(MINUTES)
