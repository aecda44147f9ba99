# Every target does its own set-up: `make demo` and `make test` work on a clean clone.
# `make` alone prints what there is. ARGS="..." is handed on to serve, demo, bench and tests.

VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
KEYSTONE := .keystone/.ready
NODE := hub/dashboard/node_modules/.ready
HEAT := .heat/.ready
ARGS ?=
NPM := PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/npm --prefix hub/dashboard

# Both workers are to find the same names, also of tests that are named after sets. Files are taken
# in their order: those of unit tests, which are short, are last, so that both workers end together.
# One waits for what becomes of processes that it killed while the other computes.
TOGETHER := -n 2 --dist loadfile --no-loadscope-reorder --durations=25
# What is locked is all there is, so nothing is resolved; what is imported is compiled then.
INSTALL := install -q --disable-pip-version-check --require-hashes --no-deps --no-compile
# Tests start hundreds of programs: what was compiled once is kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo serve test tests checks bench fuzz heat-answers test-clean-machine pictures vendor routines-version node-life sbom release format format-check lint types imports programs clean

help: ## print this
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|' 2>/dev/null \
	    || sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1: \2/p' Makefile

setup: $(READY) ## the virtual environment in .venv, with all that is needed; nothing else

demo: $(READY) ## see it work: examples, hooks, webhooks, an unanswered hook, a resume
	@$(VENV)/bin/headgate demo $(ARGS)

serve: $(READY) ## start a server on http://127.0.0.1:8004, its data in ./headgate-data
	@$(VENV)/bin/headgate serve $(ARGS)

# Two at a time: one waits for packages while the other computes.
test: $(READY) ## everything that must be green: format, lint, types, import rules, tests
	@$(MAKE) --no-print-directory -j 2 --output-sync=target checks
	@$(MAKE) --no-print-directory tests
	@echo "make test: format, lint, types, import rules and tests are green"

checks: $(NODE) $(KEYSTONE) types programs format-check lint imports

tests: $(READY) $(KEYSTONE) $(NODE) programs ## the tests alone
ifeq ($(ARGS),)
	PYTHONHASHSEED=0 $(PYTHON) -m pytest $(TOGETHER)
else
	$(PYTHON) -m pytest $(ARGS)
endif

test-clean-machine: ## make demo and make test on a minimal Debian 12, in a chroot (as root)
	@.ci/clean-machine $(if $(ARGS),"$(ARGS)")

# Tests start a RabbitMQ and a PgBouncer of their own; one of the examples is run with curl; the
# dashboard is tested in Chromium, without the parts that only a screen shows. Playwright drives it
# with a Node.js of its own, which needs libatomic1.
# RUNLEVEL keeps Debian from starting RabbitMQ and PgBouncer.
programs: $(READY)
	@missing=; \
	$(VENV)/lib/python3*/site-packages/playwright/driver/node --version >/dev/null 2>&1 \
	    || missing="$$missing libatomic1"; \
	[ -e /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing="$$missing rabbitmq-server"; \
	PATH="$$PATH:/usr/sbin" command -v pgbouncer >/dev/null || missing="$$missing pgbouncer"; \
	command -v curl >/dev/null || missing="$$missing curl"; \
	command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null \
	    || missing="$$missing chromium-headless-shell"; \
	if [ -n "$$missing" ]; then \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	        echo "make: installing$$missing"; \
	        apt-get update -qq; \
	        RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	            --no-install-recommends $$missing >/dev/null; \
	    else \
	        echo "make: the tests need$$missing; install it (Debian: apt-get install$$missing)" >&2; \
	        exit 1; \
	    fi; \
	fi

# The Keystone that tests ask who somebody is: an environment of its own, as its needs are not ours.
$(KEYSTONE): requirements/keystone.lock | $(READY)
	@echo "make: installing the Keystone of the tests in .keystone"
	@rm -rf .keystone
	@$(PYTHON) -m venv --without-pip .keystone
	@$(PYTHON) -m pip --python .keystone/bin/python $(INSTALL) -r requirements/keystone.lock
	@$(PYTHON) -m pip --python .keystone/bin/python check
	@touch $(KEYSTONE)

# What OpenStack Heat says of templates is recorded; this asks it anew, in an environment of its own.
heat-answers: $(HEAT) ## ask OpenStack Heat anew what the templates of tests/compat/hot mean
	$(PYTHON) -m tests.compat.hot.record .heat/bin/python

$(HEAT): requirements/heat.lock | $(READY)
	@echo "make: installing OpenStack Heat in .heat"
	@rm -rf .heat
	@$(PYTHON) -m venv .heat
	@.heat/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/heat.lock
	@touch $(HEAT)

bench: $(READY) ## measure, and print the figures; of one part with ARGS=language
	@$(PYTHON) -m tests.bench $(ARGS)

fuzz: $(READY) ## throw chance at the template language for FUZZ seconds each, 300 if not said
	HEADGATE_FUZZ=$(or $(FUZZ),300) $(PYTHON) -m pytest -o timeout=0 tests/property/test_hot_fuzz.py $(ARGS)

# What the dashboard is checked with, and made of; nothing of it is needed to run it.
$(NODE): hub/dashboard/package-lock.json | $(READY)
	@echo "make: installing what is locked in hub/dashboard/package-lock.json"
	@$(NPM) install --no-save --no-audit --no-fund --loglevel=error
	@touch $(NODE)

pictures: $(READY) programs ## take the pictures of README and docs anew
	$(PYTHON) -m tests.browser.pictures

vendor: $(NODE) ## make hub/dashboard/page/vendor anew, of what is locked
	$(NPM) run -s vendor

routines-version: $(READY) ## before a release: record the version of the functions and views
	$(PYTHON) -m tools.record_routines

node-life: $(READY) ## write the diagrams of a node's life from the node machine into the docs
	@$(PYTHON) -m tools.node_life

sbom: $(READY) ## what a release is made of, in build/sbom.cdx.json (CycloneDX)
	@$(PYTHON) -m tools.sbom build/sbom.cdx.json

release: $(READY) ## VERSION=1.2.3: check that the work tree is this release, and tag it; see CONTRIBUTING.md
	@$(PYTHON) -m tools.release "$(VERSION)"

format: $(READY) $(NODE) ## format the code
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix --select I .
	$(NPM) run -s format

format-check: $(READY)
	$(VENV)/bin/ruff format --check .

lint: $(READY) $(NODE) ## ruff; biome for the dashboard
	$(VENV)/bin/ruff check .
	$(NPM) run -s lint

types: $(READY) $(NODE) ## mypy, strict; tsc for the dashboard
	$(VENV)/bin/mypy
	$(NPM) run -s types

imports: $(READY) ## who may import whom
	$(VENV)/bin/lint-imports

clean: ## remove what was built here: .venv and caches
	rm -rf $(VENV) .keystone .heat hub/dashboard/node_modules build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A Python that is new enough; on Debian, what its venv module lacks is installed when we may.
$(READY): requirements/test.lock pyproject.toml Makefile
	@set -eu; \
	new_enough='import sys; sys.exit(sys.version_info < (3, 11))'; \
	if ! $(PYTHON) -c "$$new_enough" 2>/dev/null; then \
	    python=; \
	    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do \
	        if $$candidate -c "$$new_enough" 2>/dev/null; then python=$$candidate; break; fi; \
	    done; \
	    if [ -z "$$python" ]; then \
	        echo "make: Headgate needs Python 3.11 or newer, and none was found" >&2; exit 1; \
	    fi; \
	    if ! $$python -c 'import ensurepip, venv' 2>/dev/null; then \
	        if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	            package=$$($$python -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
	            echo "make: installing $$package"; \
	            apt-get update -qq; \
	            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$$package" >/dev/null; \
	        else \
	            echo "make: $$python has no venv module; install it (Debian: python3-venv)" >&2; exit 1; \
	        fi; \
	    fi; \
	    echo "make: making $(VENV)"; \
	    rm -rf $(VENV); \
	    $$python -m venv $(VENV); \
	fi; \
	echo "make: installing what is locked in requirements/test.lock"; \
	$(PYTHON) -m pip $(INSTALL) -r requirements/test.lock; \
	$(PYTHON) -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	$(PYTHON) -m pip check; \
	touch $(READY)
