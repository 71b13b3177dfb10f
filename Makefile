# Antiphon: `make serve` runs it, `make test` tests it, `make help` lists the rest.
#
# Settings, on the command line: PYTHON=python3.12, EXTRA=cuda, HOST=0.0.0.0, PORT=9000,
# PIPELINE=lark (the voice alone), ARGUMENTS="--model DIR" (handed to `antiphon serve`), TESTS=tests/app
# (handed to pytest).

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
EXTRA ?= cpu
HOST ?= 127.0.0.1
PORT ?= 8000
PIPELINE ?= conversation
ARGUMENTS ?=
TESTS ?=

ENVIRONMENT := .venv
BIN := $(ENVIRONMENT)/bin
SET_UP := $(PYTHON) scripts/set_up.py --environment $(ENVIRONMENT) --backend $(EXTRA)
SERVER_PACKAGES := libnuma.so.1:libnuma1
TEST_PACKAGES := ffmpeg:ffmpeg espeak-ng:espeak-ng chromium:chromium g++:g++ \
	/usr/share/pocketsphinx/test/data/librivox:pocketsphinx-testdata

# The demo's logic is tested with the Node.js inside Playwright: Debian 12's own is too old for it.
NODE_FOLDER := 'import playwright; print(playwright.__path__[0] + "/driver")'

.PHONY: help setup setup-development system-packages system-packages-for-tests
.PHONY: serve clients test lint format doctor clean

help:  ## lists what make can do here
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: system-packages  ## makes the environment .venv with everything the server needs
	@$(SET_UP)

setup-development: system-packages
	@$(SET_UP) --extra dev --extra recipes

system-packages:
	@scripts/install_system_packages.sh "the server" $(SERVER_PACKAGES)

system-packages-for-tests:
	@scripts/install_system_packages.sh "the test suite" $(TEST_PACKAGES)

clients:  ## installs other makers' client libraries, which the tests run, into .venv-clients
	@test -x .venv-clients/bin/python || $(PYTHON) -m venv .venv-clients
	@.venv-clients/bin/pip install --quiet -r tests/clients/peers/requirements.txt

serve: setup  ## sets up, prepares the models and starts the server on 127.0.0.1:8000
	@$(BIN)/antiphon models fetch --for serve --for conversation
	@exec $(BIN)/antiphon serve --host $(HOST) --port $(PORT) --pipeline $(PIPELINE) $(ARGUMENTS)

test: system-packages-for-tests lint clients  ## installs what the tests need, then checks and tests it all
	@$(BIN)/antiphon models fetch --for serve --for conversation --for test
	@echo "Running the tests."
	@PATH="$$($(BIN)/python -c $(NODE_FOLDER)):$$PATH" $(BIN)/python -m pytest $(TESTS)

lint: setup-development  ## checks style and types
	@echo "Checking style and types."
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup-development  ## formats the code and mends what can be mended by itself
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

doctor: setup  ## says what is wrong with this installation and how to mend it
	@$(BIN)/antiphon doctor

clean:  ## removes the environment and everything that tools left behind
	@rm -rf $(ENVIRONMENT) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
	@echo "Removed the environment and the caches. Fetched models are kept: see antiphon models list."
