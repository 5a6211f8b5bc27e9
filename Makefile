# The one door. `make demo` shows what Anchorline does; `make test` passes the tests. Each first installs what a
# fresh Debian 12 lacks.

TARGET := $(or $(CARGO_TARGET_DIR),target)
# As packages carry it.
GUIDED := $(TARGET)/guided/anchorline
# Options of the demo or the benchmark, such as ARGS="--keep" or ARGS="--help".
ARGS ?=

# A continuous integration that cannot run the end-to-end tests has not passed them.
ifdef CI
export ANCHORLINE_REQUIRE_E2E ?= 1
endif

.DEFAULT_GOAL := help
.PHONY: help setup build release package demo test e2e service bench bench-quick bench-pfcp bench-check decoders differential fuzz soak miri lint clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what a fresh Debian 12 lacks
	@scripts/setup.sh

build: setup ## Build the executables, optimised
	cargo build --locked --release -p anchorline -p anchorline-e2e --bins

release: setup ## Build the executable as packages carry it, guided by what a first build does; three times a build
	@scripts/release.sh

package: release ## Make a Debian package of that, into target/package
	@scripts/package.sh

demo: build ## Run the demo; ARGS="--keep" leaves it running for a look
	@$(TARGET)/release/demo $(ARGS)

test: setup ## Run all tests and the linters
	@scripts/test.sh

e2e: setup ## Run the end-to-end tests alone
	cargo build --locked --workspace --all-targets
	cargo test --locked --workspace --test e2e

service: setup ## Run the package's unit under a systemd of its own, in namespaces: starts, reloads, deaths, stops
	cargo build --locked -p anchorline --bins
	@scripts/check-service.sh

bench: release ## Measure everything for the record, into bench/report; nine minutes on a quiet machine, after the build
	@$(GUIDED) bench all --report bench/report $(ARGS)

bench-quick: build ## The same in less than a minute, rougher, into target/bench-quick
	@$(TARGET)/release/anchorline bench all --quick --report $(TARGET)/bench-quick $(ARGS)

bench-pfcp: release ## Fail if sessions over PFCP fall short of what is promised: rates, memory, growth to a million
	@$(GUIDED) bench pfcp --sessions 1000000 \
		--require establishments=30000,modifications=60000,bytes=1536,last_to_first_cpu=0.9 $(ARGS)

bench-check: build ## Fail if a ratio to the bare loop fell below bench/baseline.json; ARGS="--update" renews that
	@$(TARGET)/release/anchorline bench check --baseline bench/baseline.json $(ARGS)

decoders: setup ## Let tshark, scapy and pycrate read all PFCP that the tests of nodes say, and others the CDR files
	@rm -rf $(TARGET)/tmp/pfcp
	cargo test --locked --package anchorline-n4 --package anchorline-matrix --tests
	@scripts/decoders.sh

# Ten comparisons of so many worlds of 2,000 packets each; FIRST=n repeats a run.
differential: WORLDS ?= 675
differential: FIRST := $(or $(FIRST),$(shell date +%s))
differential: setup ## Compare the data path with its slow model, on ten million packets of new random worlds
	@echo "worlds $(FIRST) and $(WORLDS) from there on"
	WORLDS=$(WORLDS) FIRST=$(FIRST) cargo test --locked --package anchorline-dataplane --lib differential -- --nocapture

soak: SOAK_SECONDS ?= 600
soak: SOAK_SEED := $(or $(SOAK_SEED),$(shell date +%s))
soak: setup ## Let one thing after another happen to a node while a user downloads, ten minutes twice; SOAK_SECONDS=n, SOAK_SEED=n
	cargo build --locked -p anchorline --bins
	SOAK_SECONDS=$(SOAK_SECONDS) SOAK_SEED=$(SOAK_SEED) cargo test --locked -p anchorline-e2e --test e2e -- soak_ --nocapture

miri: ## Interpret the tests of unsafe rooms and rings; needs rustup, takes some minutes
	@scripts/miri.sh

fuzz: setup ## Fuzz every decoder, a minute each; SECONDS_EACH=600 for longer
	@scripts/fuzz.sh

lint: setup ## Check formatting and run clippy
	@scripts/lint.sh

clean: ## Remove everything that was built
	cargo clean
