# What can be done here. Plain `python3` (3.11 or newer), its venv module and a package index are enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SAM_VENV := .venv-sam
CHECKOV_VENV := .venv-checkov
LITELLM_VENV := .venv-litellm
EMULATOR_VENV := .venv-emulator
LAMBDA_VENV := .venv-lambda
THROUGHPUT_VENV := .venv-throughput
LAYER_PINS := layers/runtime/requirements.txt layers/content/requirements.txt
PINS := $(LAYER_PINS) requirements-dev.txt
INSTALL := -m pip install --quiet --disable-pip-version-check
# Two workers: more win nothing on the two cores of a small machine.
WORKERS ?= 2
# Lambda's own version, for what must run on it; pyenv hides it unless its version is asked for.
PYTHON_LAMBDA ?= $(shell PYENV_VERSION=$$(pyenv versions --bare 2>/dev/null | grep '^3\.13\.' | tail -n 1) \
	python3.13 -c 'import sys; print(sys.executable)' 2>/dev/null || echo python3.13)
URLS ?=

.PHONY: help setup run test check checkov build-test sam-local e2e openapi pins engine litellm clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(VENV)/.installed ## the environment that everything else runs in

run: setup ## start the local stack, submit a batch (URLS="https://a https://b", or the built-in site) and show it
	$(BIN)/sift demo $(URLS)

test: setup ## all tests but those that need the SAM CLI, Docker or an emulator
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not needs_sam and not needs_containers and not needs_emulator"

check: setup ## lint, format, types, template rules (cfn-lint among them), docs in step with the code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/template tests/docs
	$(BIN)/python -m sift.api.openapi | diff docs/openapi.json -

checkov: $(CHECKOV_VENV)/.installed ## the template against the security rules of checkov (220 MB, installed on demand)
	$(CHECKOV_VENV)/bin/checkov --file template.yaml --framework cloudformation --quiet --compact --skip-download

build-test: setup $(SAM_VENV)/.installed $(LAMBDA_VENV)/.installed ## sam validate, sam build, and each built function imported on its own and started in Lambda's emulator
	$(BIN)/pytest -m needs_sam tests/build

sam-local: setup $(SAM_VENV)/.installed ## every event through sam local invoke, a job through sam local start-api (needs Docker; SAM_LOCAL_FLAGS for sam local)
	$(BIN)/pytest -m needs_containers tests/sam_local

e2e: setup $(SAM_VENV)/.installed $(EMULATOR_VENV)/.installed ## sam deploy into an emulator of AWS, and the end-to-end suite against that stack
	$(BIN)/pytest -m needs_emulator tests/emulator

openapi: setup ## write docs/openapi.json from the code
	$(BIN)/python -m sift.api.openapi > docs/openapi.json.new
	mv docs/openapi.json.new docs/openapi.json

# A package stays at its pinned version until `make pins UPGRADE=--upgrade`. What the layers pin on every
# machine is left out of requirements-dev.txt: the files are installed together.
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version $(or $(1),3.11) --generate-hashes $(UPGRADE) \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make pins"
pins: setup ## write requirements*.txt from requirements*.in
	$(COMPILE) layers/runtime/requirements.in -o layers/runtime/requirements.txt
	$(COMPILE) layers/content/requirements.in -o layers/content/requirements.txt
	$(COMPILE) requirements-dev.in -o requirements-dev.txt \
		$$(sed -n 's/^\([a-z0-9-]*\)==[^ ;]* \\$$/--no-emit-package \1/p' $(LAYER_PINS) | sort -u)
	$(COMPILE) requirements-sam.in -o requirements-sam.txt
	$(COMPILE) requirements-checkov.in -o requirements-checkov.txt
	$(COMPILE) requirements-litellm.in -o requirements-litellm.txt
	$(call COMPILE,3.13) requirements-emulator.in -o requirements-emulator.txt
	$(call COMPILE,3.13) requirements-lambda.in -o requirements-lambda.txt
	$(COMPILE) requirements-throughput.in -o requirements-throughput.txt

# 57 MB under a licence of its own: it is fetched, never committed. A JDK of 17 or newer runs it.
ENGINE := amplify-dynamodb-simulator
ENGINE_VERSION := 2.9.30
ENGINE_SHA512 := c5379e44bbf311fab2779961ddb1f8734907bd21c79a6843e590ec1c5280439836665e89aa515dbad6908422c7cf1129e91cb5a3b4c1ea7888a17b9002749ec1
engine: .engine/DynamoDBLocal.jar ## DynamoDB Local (needs npm and a JDK): the tests of the table then run on it too

.engine/DynamoDBLocal.jar:
	rm -rf .engine
	mkdir .engine
	cd .engine && npm pack --silent $(ENGINE)@$(ENGINE_VERSION)
	cd .engine && $(PYTHON) -c 'import hashlib, sys; found = hashlib.sha512(open(sys.argv[1], "rb").read()).hexdigest(); \
		sys.exit(None if found == sys.argv[2] else "not the package that is pinned: " + found)' \
		$(ENGINE)-$(ENGINE_VERSION).tgz $(ENGINE_SHA512)
	cd .engine && tar -xzf $(ENGINE)-$(ENGINE_VERSION).tgz -m --strip-components=2 package/emulator
	rm .engine/$(ENGINE)-$(ENGINE_VERSION).tgz

litellm: $(LITELLM_VENV)/.installed ## LiteLLM, a real model gateway (600 MB): what sends requests to one is then tested with it too

clean: ## remove what the other targets made
	rm -rf $(VENV) $(SAM_VENV) $(CHECKOV_VENV) $(EMULATOR_VENV) $(LITELLM_VENV) $(LAMBDA_VENV) $(THROUGHPUT_VENV) .aws-sam .sift .engine out .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- stamps: an environment is touched only when what it is made from has changed ---

$(VENV)/.packages: $(PINS)
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
		"sift needs Python 3.11 or newer, this is %s; try: make PYTHON=python3.12 ..." % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) --require-hashes $(addprefix -r ,$(PINS))
	@touch $@

# No build isolation: it would fetch a build backend that nothing pins.
$(VENV)/.installed: $(VENV)/.packages pyproject.toml
	$(BIN)/python $(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# No resolving: older releases of pip miss a pin whose package is asked for with extras; the check makes up for it.
$(EMULATOR_VENV)/.installed $(LAMBDA_VENV)/.installed: PYTHON = $(PYTHON_LAMBDA)
$(addsuffix /.installed,$(SAM_VENV) $(CHECKOV_VENV) $(LITELLM_VENV) $(EMULATOR_VENV) $(LAMBDA_VENV) $(THROUGHPUT_VENV)): $(VENV)-%/.installed: requirements-%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(INSTALL) --require-hashes --no-deps -r $<
	$(@D)/bin/python -m pip check
	@touch $@
