# How `sam build` makes a layer: what it would do itself, by hash, and then compiled bytecode, without which each cold
# start compiles everything again, for the folder is read-only. No container: the template lies two folders up.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON := python3.13
TEMPLATE := $(dir $(lastword $(MAKEFILE_LIST)))../template.yaml
# One for all layers and functions: tests/template holds that.
ARCHITECTURE := $(shell sed -n 's/^ *BuildArchitecture: *//p' $(TEMPLATE) | head -n 1)
MACHINE := $(patsubst arm64,aarch64,$(ARCHITECTURE))
# Lambda's Python 3.13 runs on Amazon Linux 2023, glibc 2.34.
PLATFORMS := $(foreach tag,manylinux_2_34 manylinux_2_28 manylinux_2_17 manylinux2014,--platform $(tag)_$(MACHINE))
TARGET = $(ARTIFACTS_DIR)/python

install = $(PYTHON) -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes \
	--target "$(TARGET)" --implementation cp --python-version 3.13 --abi cp313 --abi abi3 --abi none $(PLATFORMS) \
	-r requirements.txt

# unchecked-hash: no time stamps, so the same source gives the same bytes, and nothing is compared at an import.
# The paths in tracebacks are those of Lambda.
compile = find "$(TARGET)" -name __pycache__ -prune -exec rm -rf {} + ; \
	$(PYTHON) -m compileall -q --invalidation-mode unchecked-hash -s "$(ARTIFACTS_DIR)" -p /opt "$(TARGET)"
