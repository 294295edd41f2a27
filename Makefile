VENV ?= .venv
PY := $(VENV)/bin/python
CORE_BUILD ?= build/core
CMAKE ?= $(VENV)/bin/cmake
NINJA ?= $(VENV)/bin/ninja
JOBS ?= 1
SANITIZE ?= OFF

.PHONY: build protos
# The compiled game core, placed beside the Python code that imports it (dota._core).
build:
	@mkdir -p $(CORE_BUILD)
	@$(CMAKE) -S . -B $(CORE_BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(NINJA)) \
	  -DPython_EXECUTABLE=$(abspath $(PY)) -DFIVE_SANITIZE=$(SANITIZE) > $(CORE_BUILD).log 2>&1 \
	  || { cat $(CORE_BUILD).log; exit 1; }
	@flock $(CORE_BUILD).lock $(NINJA) -C $(CORE_BUILD) -j$(JOBS)
	@for so in $(CORE_BUILD)/_core*.so; do \
	  cp $$so libs/dota/.$$(basename $$so).new && mv libs/dota/.$$(basename $$so).new libs/dota/$$(basename $$so); done

# Generated code of the services' APIs (protos/five/v1/*_pb2*.py).
protos:
	@$(PY) protos/build.py
