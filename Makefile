VENV ?= .venv
PY := $(VENV)/bin/python
CORE_BUILD ?= build/core
CMAKE ?= $(VENV)/bin/cmake
NINJA ?= $(VENV)/bin/ninja
JOBS ?= 1
SANITIZE ?= OFF
CORE_DEST ?= libs/dota

.PHONY: build protos test-asan
# The compiled game core, placed beside the Python code that imports it (dota._core).
build:
	@mkdir -p $(CORE_BUILD)
	@$(CMAKE) -S . -B $(CORE_BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(NINJA)) \
	  -DPython_EXECUTABLE=$(abspath $(PY)) -DFIVE_SANITIZE=$(SANITIZE) > $(CORE_BUILD).log 2>&1 \
	  || { cat $(CORE_BUILD).log; exit 1; }
	@flock $(CORE_BUILD).lock $(NINJA) -C $(CORE_BUILD) -j$(JOBS)
	@for so in $(CORE_BUILD)/_core*.so; do \
	  cp $$so $(CORE_DEST)/.$$(basename $$so).new && \
	  mv $(CORE_DEST)/.$$(basename $$so).new $(CORE_DEST)/$$(basename $$so); done

# The game's tests on a core with address and undefined-behaviour sanitizers, in a copy of the package.
ASAN_DIR := build/asan
test-asan:
	@mkdir -p $(ASAN_DIR)/libs/dota
	@cp -r libs/dota/*.py libs/dota/data $(ASAN_DIR)/libs/dota/
	@$(MAKE) --no-print-directory build CORE_BUILD=$(ASAN_DIR)/core CORE_DEST=$(ASAN_DIR)/libs/dota SANITIZE=ON
	@LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 $(PY) -m pytest tests/dota -o "pythonpath=$(ASAN_DIR)/libs libs ." --timeout 600

# Generated code of the services' APIs (protos/five/v1/*_pb2*.py).
protos:
	@$(PY) protos/build.py
