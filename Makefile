# Targets with a `##` text are listed by `make help`. Set-up happens by itself, once; see packaging/set-up.sh.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
# The extension module links no libpython, so its crate is tested from Python and left out here.
RUST_TESTED := --workspace --exclude assay-python

PYTEST := $(BIN)/python -m pytest
# Two workers more than cores: tests wait for servers and clocks. One that has nothing left to do takes tests from others.
IN_PARALLEL := --numprocesses $(shell echo $$(($$(nproc) + 2))) --dist worksteal

# A machine takes a core; the files that take longest begin.
LAB_IN_PARALLEL := --numprocesses 2 --dist loadfile --no-loadscope-reorder

# Stamps: each is newer than everything its step was made from.
SET_UP := .venv/.assay-set-up
SET_UP_DEV := .venv/.assay-set-up-dev
SET_UP_DOCS := .venv/.assay-set-up-docs
SET_UP_RELEASE := .venv/.assay-set-up-release
BUILT := .venv/.assay-built

export PATH := $(CURDIR)/.venv/rust:$(PATH)
export CARGO_TERM_PROGRESS_WHEN := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
# maturin would install into whichever environment is active.
export VIRTUAL_ENV := $(CURDIR)/.venv
# Without kept bytecode each worker of the tests compiles every module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help set-up build assess test test-all proof crash test-packaging fuzz lab lab-night set-up-lab lint fmt bench bench-gate bundle clean docs wheel packages container release

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

set-up: $(SET_UP_DEV) ## check this machine, make .venv and install all tools for development

build: $(BUILT) ## compile the load generator (release) and install assay into .venv

assess: $(BUILT) ## examine the storage under ./assay-data in about two minutes, and write the report
	@mkdir -p assay-data
	@echo "examining the storage under ./assay-data: writes and reads one file and a small database there, keeps them for the next time"
	@status=0; $(BIN)/assay assess ./assay-data --quick || status=$$?; \
	case $$status in 0|1|5) ;; *) exit $$status;; esac # 1 and 5 are answers, too: a limit is missed, or unknown

test: $(BUILT) $(SET_UP_DEV) ## run the tests: Rust, Python, examples in docstrings; at most ten minutes on two cores
	cargo test --locked $(RUST_TESTED)
	$(PYTEST) $(IN_PARALLEL) -m "not (packaging or slow or timing)"
	$(PYTEST) -m "timing and not slow"

test-all: $(BUILT) $(SET_UP_DEV) ## run what `make test` runs, the tests marked slow, and more random examples
	ASSAY_ALL=1 cargo test --locked $(RUST_TESTED)
	$(PYTEST) $(IN_PARALLEL) --hypothesis-profile full -m "not (packaging or timing)"
	$(PYTEST) --hypothesis-profile full -m timing

proof: ## prove the verifier with 1,000 seeds of each class of fault, or ASSAY_SEEDS
	ASSAY_SEEDS=$${ASSAY_SEEDS:-1000} cargo test --locked -p assay-integrity --test proof

crash: $(BUILT) $(SET_UP_DEV) ## try 20,000 states of a toy log, thousands of PostgreSQL, MariaDB and SQLite with their controls; needs root
	ASSAY_ALL=1 cargo test --locked -p assay-crash
	ASSAY_CRASH_STATES=$${ASSAY_CRASH_STATES:-600} $(PYTEST) --timeout 3600 -m "" tests/insight/test_crash_states.py

test-packaging: $(BUILT) $(SET_UP_RELEASE) ## run the slow tests: wheel, pip install, bundle without index, packages, commands of README, tour and recipes, a fresh Debian
	$(PYTEST) -m packaging --timeout 1800

fuzz: $(BUILT) $(SET_UP_DEV) ## try mutated input on the command for ASSAY_FUZZ_SECONDS (600), from ASSAY_SEED (1) on
	$(BIN)/python tests/fuzz

set-up-lab: ## install QEMU and what else the lab needs, fetch Debian's kernel into target/lab
	@lab/set-up.sh

lab: $(BUILT) $(SET_UP_DEV) ## try what only a machine of its own allows in virtual machines: power cuts, device mapper, md
	@status=0; $(PYTEST) lab -m "lab and not night" $(LAB_IN_PARALLEL) --timeout 3600 || status=$$?; \
	$(BIN)/python -m lab.results; exit $$status

lab-night: $(BUILT) $(SET_UP_DEV) ## run the lab's longest test, for LAB_NIGHT_HOURS (8)
	$(PYTEST) lab -m "lab and night" --timeout 0
	$(BIN)/python -m lab.results

lint: $(BUILT) $(SET_UP_DEV) ## check formatting, lints and types: rustfmt, clippy, ruff, mypy, stubtest
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || \
	{ command -v rustup >/dev/null || { echo "lint: rustfmt and clippy are missing; install the packages that belong to your rustc"; exit 1; }; \
	echo "lint: adding rustfmt and clippy to the Rust toolchain"; rustup component add rustfmt clippy; }
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest assay._core

fmt: $(SET_UP_DEV) ## format Rust and Python
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-gate: $(BUILT) $(SET_UP_DEV) ## hold CPU per I/O on null: against the committed baseline
	$(BIN)/python benches/gate.py

bench: $(BUILT) $(SET_UP_DEV) ## compare with fio, pgbench and ready files, check the array model, and keep the output under benches/results
	$(BIN)/python benches/generator.py
	$(BIN)/python benches/verify.py
	$(BIN)/python benches/models.py
	$(BIN)/python benches/array_serve.py
	$(BIN)/python benches/oltp.py
	$(BIN)/python benches/brokerage.py
	$(BIN)/python benches/dss_load.py
	$(BIN)/python benches/sizing.py

docs: $(SET_UP_DOCS) ## write the documents as a site into dist/docs; it is read, and searched, without a network
	$(BIN)/python -m sphinx -q -W -b html -c packaging/docs docs dist/docs
	@echo "dist/docs/index.html"

bundle: $(SET_UP_DEV) ## write dist/assay-VERSION-ARCH.tar.gz, which installs without any index
	$(BIN)/python packaging/bundle.py

wheel: $(SET_UP_DEV) ## write dist/assay_storage-VERSION-cp311-abi3-manylinux_2_28_ARCH.whl; ARCH=aarch64 links for that machine
	$(BIN)/python packaging/release.py wheel $(if $(ARCH),--arch $(ARCH))

packages: $(BUILT) $(SET_UP_RELEASE) ## write a .deb and an .rpm into dist, for the Python of .venv, or PYTHON_VERSION=3.13
	$(BIN)/python packaging/release.py packages $(if $(PYTHON_VERSION),--python-version $(PYTHON_VERSION))

container: ## build the image assay-storage from the .deb in dist, with podman, buildah or docker
	@packaging/container.sh

release: $(BUILT) $(SET_UP_RELEASE) ## write wheels, source, bundle, packages, bill of materials, notes and checksums into dist; TRIAL=1: of any state
	$(BIN)/python packaging/release.py $(if $(TRIAL),--trial)

clean: ## remove what was built; keeps .venv, ./assay-data and ./assay-results
	rm -rf target dist .mypy_cache .pytest_cache .ruff_cache .hypothesis $(BUILT)
	find python tests benches packaging lab -name __pycache__ -prune -exec rm -rf {} +

$(SET_UP): pyproject.toml packaging/set-up.sh
	@packaging/set-up.sh
	@touch $@

$(SET_UP_DEV): $(SET_UP)
	@packaging/set-up.sh dev
	@touch $@

$(SET_UP_DOCS): $(SET_UP) pyproject.toml
	@$(BIN)/python -m pip install --quiet --group docs
	@touch $@

$(SET_UP_RELEASE): $(SET_UP_DEV) pyproject.toml
	@$(BIN)/python -m pip install --quiet --group release
	@touch $@

# `maturin develop` installs assay editable, with its dependencies: only a change of Rust or of pyproject.toml needs it.
$(BUILT): $(SET_UP) $(RUST_SOURCES)
	@echo "building assay (release) and installing it with its dependencies into .venv"
	@PIP_QUIET=1 CARGO_TERM_QUIET=true $(BIN)/maturin develop --release --locked --quiet --extras databases,dss,pdf,calibrate,frames,mcp,seal
	@touch $@
