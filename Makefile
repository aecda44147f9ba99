# Every target installs what it needs: `make demo` and `make test` work on a clean clone. `make` lists the
# targets. ARGS="..." is passed on to serve, demo, bench and tests.

VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
KEYSTONE := .keystone/.ready
NODE := hub/dashboard/node_modules/.ready
HEAT := .heat/.ready
OPENSTACK := .openstack/.ready
ANSIBLE := .ansible/.ready
DOCS := .docs/.ready
SCRIPTS := build/iframe-worker.js
TEST_BED := build/openstack
ARGS ?=
NPM := PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/npm --prefix hub/dashboard

# Files run in order: the short unit tests are last, so that all workers end together. Three workers on two cores:
# tests wait for servers a quarter of the time.
TOGETHER := -n 3 --dist loadfile --no-loadscope-reorder --durations=25
# The lock files are complete, so pip resolves nothing. Python compiles modules when it imports them.
INSTALL := install -q --disable-pip-version-check --require-hashes --no-deps --no-compile
# Long steps say every 5 seconds that they continue.
PROGRESS := tools/progress
# Tests start hundreds of programs, which reuse the compiled modules.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo serve test tests test-explore test-failover failover-programs test-upgrade test-bench test-ansible test-image checks bench figures fuzz heat-answers test-clean-machine test-openstack openstack openstack-stop openstack-programs pictures vendor routines-version released-statements client-documents helm-schema reference node-life wheels sbom release docs format format-check lint types imports programs clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|' 2>/dev/null \
	    || sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1: \2/p' Makefile

setup: $(READY) ## create the virtual environment in .venv

demo: $(READY) ## run the demo: create, approve, update, stop, resume and delete a service
	@$(VENV)/bin/headgate demo $(ARGS)

serve: $(READY) ## start a server on http://127.0.0.1:8004 with its data in ./headgate-data
	@$(VENV)/bin/headgate serve $(ARGS)

# Two jobs: one downloads packages while the other computes.
test: $(READY) ## run all checks: format, lint, types, import rules, tests
	@$(PROGRESS) "checking format, lint, types and docs" \
	    $(MAKE) --no-print-directory -j 2 --output-sync=target checks
	@$(MAKE) --no-print-directory tests
	@echo "make test: format, lint, types, import rules and tests pass"

checks: $(NODE) $(KEYSTONE) types programs docs format-check lint imports

tests: $(READY) $(KEYSTONE) $(NODE) $(SCRIPTS) programs ## run the tests only
ifeq ($(ARGS),)
	$(PYTHON) -m pytest $(TOGETHER)
else
	$(PYTHON) -m pytest $(ARGS)
endif

test-explore: $(READY) programs ## explore the models, and random templates and events: minutes
	$(PYTHON) -m pytest $(or $(ARGS),-n 3 --dist loadfile --no-loadscope-reorder --durations=25 tests/property tests/model)

test-clean-machine: ## run make demo, the units with systemd, and make test on a minimal Debian 12 (as root)
	@.ci/clean-machine $(if $(ARGS),"$(ARGS)")

# Installs the Debian packages in $$missing, or lists them.
define INSTALL_MISSING
if [ -n "$$missing" ]; then \
    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
        $(PROGRESS) "reading the lists of packages" apt-get update -qq; \
        RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive $(PROGRESS) "installing$$missing" \
            sh -c "apt-get install -y -qq --no-install-recommends $$missing >/dev/null"; \
    else \
        echo "make: the tests need$$missing; install it (Debian: apt-get install$$missing)" >&2; \
        exit 1; \
    fi; \
fi
endef

# Tests start private servers of RabbitMQ, PgBouncer, HAProxy and PostgreSQL 15, the oldest supported one, execute
# the commands of the docs with curl and OpenSSL, and test the dashboard in headless Chromium. Playwright includes a
# Node.js, which needs libatomic1.
# RUNLEVEL keeps Debian from starting the servers.
programs: $(READY)
	@missing=; \
	$(VENV)/lib/python3*/site-packages/playwright/driver/node --version >/dev/null 2>&1 \
	    || missing="$$missing libatomic1"; \
	[ -e /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing="$$missing rabbitmq-server"; \
	PATH="$$PATH:/usr/sbin" command -v pgbouncer >/dev/null || missing="$$missing pgbouncer"; \
	[ -x /usr/lib/postgresql/15/bin/postgres ] || missing="$$missing postgresql-15"; \
	PATH="$$PATH:/usr/sbin" command -v haproxy >/dev/null || missing="$$missing haproxy"; \
	command -v curl >/dev/null || missing="$$missing curl"; \
	command -v openssl >/dev/null || missing="$$missing openssl"; \
	command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null \
	    || missing="$$missing chromium-headless-shell"; \
	$(INSTALL_MISSING)

# Debian's own instances of Patroni and etcd are not used.
failover-programs: programs
	@missing=; \
	command -v patroni >/dev/null || missing="$$missing patroni"; \
	command -v etcd >/dev/null || missing="$$missing etcd-server"; \
	$(INSTALL_MISSING)

test-failover: $(READY) failover-programs ## run the tests with Patroni: the database fails over under load
	$(PYTHON) -m pytest $(or $(ARGS),-s tests/failover)

# FROM is a revision of this repository, such as the tag of the previous release.
FROM ?=
test-upgrade: $(READY) programs ## FROM=v1.2.0: replace the processes of the previous release under load
	HEADGATE_PREVIOUS=$(FROM) $(PYTHON) -m pytest $(or $(ARGS),-s tests/upgrade)

test-bench: $(READY) ## run the benchmarks at a small size
	$(PYTHON) -m pytest $(or $(ARGS),tests/measurement)

test-ansible: $(READY) $(ANSIBLE) ## run the playbooks of the docs with Ansible
	$(PYTHON) -m pytest $(or $(ARGS),tests/ansible)

$(ANSIBLE): requirements/ansible.lock | $(READY)
	@rm -rf .ansible
	@$(PYTHON) -m venv --without-pip .ansible
	@$(PROGRESS) "installing Ansible in .ansible" $(PYTHON) -m pip --python .ansible/bin/python $(INSTALL) -r requirements/ansible.lock
	@touch $(ANSIBLE)

# The Keystone of the tests has a separate environment, because its requirements conflict with Headgate's.
$(KEYSTONE): requirements/keystone.lock | $(READY)
	@rm -rf .keystone
	@$(PYTHON) -m venv --without-pip .keystone
	@$(PROGRESS) "installing the Keystone of the tests in .keystone" $(PYTHON) -m pip --python .keystone/bin/python $(INSTALL) -r requirements/keystone.lock
	@$(PYTHON) -m pip --python .keystone/bin/python check
	@touch $(KEYSTONE)

# Debian's own instances of the servers are not used.
openstack-programs:
	@missing=; \
	[ -e /usr/sbin/mariadbd ] || missing="$$missing mariadb-server-core"; \
	command -v mariadb >/dev/null || missing="$$missing mariadb-client-core"; \
	[ -e /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing="$$missing rabbitmq-server"; \
	command -v memcached >/dev/null || missing="$$missing memcached"; \
	command -v qemu-img >/dev/null || missing="$$missing qemu-utils"; \
	$(INSTALL_MISSING)

# The OpenStack of the test bed has a separate environment.
$(OPENSTACK): requirements/openstack.lock | $(READY)
	@rm -rf .openstack
	@$(PYTHON) -m venv --without-pip .openstack
	@$(PROGRESS) "installing the OpenStack of the tests in .openstack" $(PYTHON) -m pip --python .openstack/bin/python $(INSTALL) -r requirements/openstack.lock
	@$(PYTHON) -m pip --python .openstack/bin/python check
	@touch $(OPENSTACK)

test-openstack: $(READY) $(OPENSTACK) openstack-programs ## run the tests on a real OpenStack
	$(PYTHON) -m pytest $(or $(ARGS),tests/openstack --durations=25)

# ARGS="--heat --octavia --swift --zaqar" also runs these services.
openstack: $(READY) $(OPENSTACK) openstack-programs ## start an OpenStack for development, until make openstack-stop
	@$(PYTHON) -m tests.openstack.testbed start $(TEST_BED) $(ARGS)

openstack-stop: $(READY) ## stop the OpenStack of make openstack; its data stay in build/openstack
	@$(PYTHON) -m tests.openstack.testbed stop $(TEST_BED)

# Records the responses of OpenStack Heat to the templates of the tests, in a separate environment.
heat-answers: $(HEAT) ## record OpenStack Heat's responses for tests/compat/hot again
	$(PYTHON) -m tests.compat.hot.record .heat/bin/python

$(HEAT): requirements/heat.lock | $(READY)
	@rm -rf .heat
	@$(PYTHON) -m venv .heat
	@$(PROGRESS) "installing OpenStack Heat in .heat" .heat/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/heat.lock
	@touch $(HEAT)

bench: $(READY) ## measure, print the figures and write build/bench.json; ARGS=create measures one part
	@$(PYTHON) -m tests.bench $(ARGS)

# ARGS='--keep "REASON"' keeps the published figures although the hot path has changed.
figures: $(READY) ## publish build/bench.json: docs/figures.json, the tables of README and docs, the charts
	@$(PYTHON) -m tests.bench.publish $(ARGS)

fuzz: $(READY) ## run the fuzz tests of the template language for FUZZ seconds each (default: 300)
	HEADGATE_FUZZ=$(or $(FUZZ),300) $(PYTHON) -m pytest -o timeout=0 tests/property/test_hot_fuzz.py $(ARGS)

# The tools that check the dashboard, and its libraries. The server does not need them.
$(NODE): hub/dashboard/package-lock.json | $(READY)
	@$(PROGRESS) "installing hub/dashboard/package-lock.json" env $(NPM) install --no-save --no-audit --no-fund --loglevel=error
	@touch $(NODE)

# Buildah builds and runs in a chroot. Needs root and Debian.
test-image: ## build the container image of HEAD without a registry, and run it (as root)
	@missing=; \
	command -v buildah >/dev/null || missing="$$missing buildah"; \
	command -v debootstrap >/dev/null || missing="$$missing debootstrap"; \
	command -v curl >/dev/null || missing="$$missing curl"; \
	$(INSTALL_MISSING)
	@.ci/container-image

pictures: $(READY) programs ## take the screenshots of README and docs
	$(PYTHON) -m tests.browser.pictures

vendor: $(NODE) ## build hub/dashboard/page/vendor from the lock file
	$(NPM) run -s vendor

routines-version: $(READY) ## record the version of the functions and views, before a release
	$(PYTHON) -m tools.record_routines

released-statements: $(READY) ## record the SQL statements of this release, for the next one's tests
	$(PYTHON) -m tests.integration.database.released_statements

client-documents: $(READY) ## write headgate/documents.py, the types of the Python client, from the API
	@$(PYTHON) -m tools.client_documents

helm-schema: $(READY) ## write the settings into the schema of the Helm chart's values
	@$(PYTHON) -m tools.helm_values_schema

reference: $(READY) ## write the generated pages and tables of docs/reference
	@$(PYTHON) -m tools.reference_pages

node-life: $(READY) ## write the diagrams of the node machine into the docs
	@$(PYTHON) -m tools.node_life

# MkDocs has a separate environment. With --quiet, --strict sees no warnings. The site contains the scripts that draw its diagrams, search it and show the API.
$(DOCS): requirements/docs.lock | $(READY)
	@rm -rf .docs
	@$(PYTHON) -m venv --without-pip .docs
	@$(PROGRESS) "installing MkDocs in .docs" $(PYTHON) -m pip --python .docs/bin/python $(INSTALL) -r requirements/docs.lock
	@$(PYTHON) -m pip --python .docs/bin/python check
	@touch $(DOCS)

# Swagger UI 5.33.0 to 5.35.0 leave out most of more than 136 operations.
$(SCRIPTS): requirements/docs-scripts.sha256 | $(READY)
	@mkdir -p build
	@cd build && PATH="$(CURDIR)/$(VENV)/bin:$$PATH" npm pack --silent $$(sed 's/.*  \(.*\)-\(.*\).tgz/\1@\2/' ../$<) >/dev/null
	@cd build && sha256sum --check --quiet ../$<
	@tar -xzOf build/mermaid-*.tgz package/dist/mermaid.min.js >build/mermaid.min.js
	@tar -xzOf build/iframe-worker-*.tgz package/shim/index.js >build/iframe-worker.js
	@for file in swagger-ui-bundle.js swagger-ui.css; do \
	    tar -xzOf build/swagger-ui-dist-*.tgz package/$$file >build/$$file; done
	@cd build && rm mermaid-*.tgz iframe-worker-*.tgz swagger-ui-dist-*.tgz

docs: $(DOCS) $(SCRIPTS) ## build the documentation site in build/docs, and check its links
	@$(PYTHON) -m tools.openapi_script build/openapi.js
	@$(PROGRESS) "building the documentation site in build/docs" sh -c \
	    'output=$$(NO_MKDOCS_2_WARNING=1 .docs/bin/mkdocs build --strict 2>&1) || { echo "$$output" >&2; exit 1; }'

wheels: $(READY) ## build the wheels headgate (server) and headgate-cli (command line and client) in build/wheels
	@$(PYTHON) -m tools.wheels build/wheels

sbom: $(READY) ## write the bill of materials to build/sbom.cdx.json (CycloneDX)
	@$(PYTHON) -m tools.sbom build/sbom.cdx.json

release: $(READY) ## VERSION=1.2.3: check that the work tree is this release, and tag it; see CONTRIBUTING.md
	@$(PYTHON) -m tools.release "$(VERSION)"

format: $(READY) $(NODE) ## format the code
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix --select I .
	$(NPM) run -s format

format-check: $(READY)
	$(VENV)/bin/ruff format --check .

lint: $(READY) $(NODE) ## run ruff, and biome for the dashboard
	$(VENV)/bin/ruff check .
	$(NPM) run -s lint

types: $(READY) $(NODE) ## run mypy, and tsc for the dashboard
	$(VENV)/bin/mypy
	$(NPM) run -s types

imports: $(READY) ## check the import rules
	$(VENV)/bin/lint-imports

clean: ## remove .venv, caches and build output
	rm -rf $(VENV) .keystone .heat .openstack .docs hub/dashboard/node_modules build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Finds a Python that is new enough. On Debian, root installs its venv module if it is missing.
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
	            $(PROGRESS) "reading the lists of packages" apt-get update -qq; \
	            DEBIAN_FRONTEND=noninteractive $(PROGRESS) "installing $$package" \
	                sh -c "apt-get install -y -qq $$package >/dev/null"; \
	        else \
	            echo "make: $$python has no venv module; install it (Debian: python3-venv)" >&2; exit 1; \
	        fi; \
	    fi; \
	    rm -rf $(VENV); \
	    $(PROGRESS) "creating $(VENV)" $$python -m venv $(VENV); \
	fi; \
	$(PROGRESS) "installing requirements/test.lock" $(PYTHON) -m pip $(INSTALL) -r requirements/test.lock; \
	$(PROGRESS) "installing Headgate" $(PYTHON) -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .; \
	$(PYTHON) -m pip check; \
	touch $(READY)
