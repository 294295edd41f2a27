# One image per service: `docker build --target rollout -t five/rollout .`, or `make images` for all.
#
# deploy/images/locks pins packages with their hashes (deploy/images/lock.py).
# Images share layers: the base; runtime (init, user); platform (packages of every service); packages of some services
# (torch, REST); and the project's wheel, which changes most often. A service adds no layer.

ARG BASE=python:3.11-slim-bookworm

# ---- build stages --------------------------------------------------------------------------------------------------

# A base with Debian's own Python needs its headers as a package.
FROM ${BASE} AS compiler
RUN python -c "import os, sysconfig; os.stat(sysconfig.get_path('include') + '/Python.h')" 2>/dev/null \
    || headers=libpython3-dev; \
    apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends g++ $headers >/dev/null
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=bind,source=deploy/images/locks,target=/locks \
    python -m venv --without-pip /opt/build \
 && pip --python /opt/build/bin/python install -q --no-deps --require-hashes -r /locks/build.txt
ENV PATH=/opt/build/bin:$PATH

# Native code has its own layer, which a change of Python code does not rebuild. Time stamps differ between clones, so all
# sources get the same one.
FROM compiler AS core
# Parallel compilers; empty: one per CPU.
ARG JOBS=
WORKDIR /src
COPY CMakeLists.txt pyproject.toml ./
COPY protos protos
COPY libs/dota/core.cmake libs/dota/core.cmake
COPY libs/dota/core libs/dota/core
COPY libs/five/native/native.cmake libs/five/native/native.cmake
COPY libs/five/native/core libs/five/native/core
RUN mkdir -p configs services libs/rapid && touch README.md \
 && find . -type f -exec touch -d 2020-01-01 {} + \
 && CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} \
    pip --python /opt/build/bin/python wheel -q --no-deps --no-build-isolation -w /tmp/core .

# The console's pages, built once for all platforms. Node comes from PyPI; the lock file pins npm's packages.
FROM ${BASE} AS console
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=bind,source=deploy/images/locks,target=/locks \
    python -m venv --without-pip /opt/node \
 && pip --python /opt/node/bin/python install -q --no-deps --require-hashes -r /locks/console.txt
WORKDIR /src
# To use another registry than npm's own: --build-arg NPM_REGISTRY=https://...
ARG NPM_REGISTRY=
COPY console console
RUN --mount=type=cache,target=/root/.npm \
    if [ -n "$NPM_REGISTRY" ]; then export npm_config_registry="$NPM_REGISTRY"; fi; \
    export NODE_EXTRA_CA_CERTS="${SSL_CERT_FILE:-}"; PY=/opt/node/bin/python sh console/build.sh

FROM core AS wheel
COPY README.md ./
COPY configs configs
COPY services services
COPY --from=console /src/services/controller/console/built services/controller/console/built
COPY libs libs
RUN find . -path ./build -prune -o -type f -exec touch -d 2020-01-01 {} + \
 && pip --python /opt/build/bin/python wheel -q --no-deps --no-build-isolation -w /wheels .

# ---- shared layers --------------------------------------------------------------------------------------------------

FROM ${BASE} AS runtime
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tini >/dev/null \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/*.log /var/log/apt \
 && groupadd --gid 10001 five \
 && useradd --uid 10001 --gid 10001 --home-dir /var/lib/five --no-create-home --shell /usr/sbin/nologin five \
 && install -d -o 10001 -g 10001 /var/lib/five /var/lib/five/blobs
# Byte code is compiled at build time, because the file system is read-only at run time.
ENV PATH=/opt/five/bin:$PATH \
    HOME=/var/lib/five \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

FROM runtime AS platform
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=bind,source=deploy/images/locks,target=/locks \
    python -m venv --without-pip /opt/five \
 && pip --python /opt/five/bin/python install -q --no-deps --require-hashes -r /locks/platform.txt \
 && find /opt/five -type d -name tests -prune -exec rm -rf {} +

FROM platform AS rating
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=bind,source=deploy/images/locks,target=/locks \
    pip --python /opt/five/bin/python install -q --no-deps --require-hashes -r /locks/rating.txt

# The Kubernetes client includes an asyncio copy, which the controller does not use.
FROM platform AS control
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=bind,source=deploy/images/locks,target=/locks \
    pip --python /opt/five/bin/python install -q --no-deps --require-hashes -r /locks/control.txt \
 && rm -rf /opt/five/lib/python3*/site-packages/kubernetes/aio

# FLAVOUR is cpu or cuda. TORCH_INDEX is an index besides pip's own, for cpu; whatever it serves, the hashes decide.
# The files of torch for building extensions and for its tests are removed: there is no compiler here.
FROM platform AS agent
ARG FLAVOUR=cpu
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=bind,source=deploy/images/locks,target=/locks \
    pip --python /opt/five/bin/python install -q --no-deps --require-hashes -r /locks/agent.txt \
 && pip --python /opt/five/bin/python install -q --no-deps --require-hashes -r /locks/torch-${FLAVOUR}.txt \
    ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} \
 && cd /opt/five/lib/python3*/site-packages/torch \
 && rm -rf include share test \
 && find bin -type f ! -name torch_shm_manager -delete
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility

FROM platform AS platform-five
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip --python /opt/five/bin/python install -q --no-cache-dir --no-deps /wheels/*.whl
WORKDIR /var/lib/five
USER 10001:10001

FROM rating AS rating-five
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip --python /opt/five/bin/python install -q --no-cache-dir --no-deps /wheels/*.whl
WORKDIR /var/lib/five
USER 10001:10001

FROM control AS control-five
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip --python /opt/five/bin/python install -q --no-cache-dir --no-deps /wheels/*.whl
WORKDIR /var/lib/five
USER 10001:10001

FROM agent AS agent-five
RUN --mount=type=bind,from=wheel,source=/wheels,target=/wheels \
    pip --python /opt/five/bin/python install -q --no-cache-dir --no-deps /wheels/*.whl
WORKDIR /var/lib/five
USER 10001:10001

# ---- the services ----------------------------------------------------------------------------------------------------

FROM platform-five AS dota-env
ARG BASE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="five/dota-env" \
      org.opencontainers.image.description="Dota 2 games behind gRPC for remote rollouts" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$BASE"
EXPOSE 50051 9100
ENTRYPOINT ["tini", "--", "python", "-m", "five.services.dota_env"]

FROM platform-five AS dotaservice
ARG BASE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="five/dotaservice" \
      org.opencontainers.image.description="Dota 2 games for trainers that speak dotaservice's protocol" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$BASE"
EXPOSE 13337 9100
ENTRYPOINT ["tini", "--", "python", "-m", "five.services.dotaservice"]

FROM platform-five AS rollout
ARG BASE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="five/rollout" \
      org.opencontainers.image.description="Plays games and sends segments to the optimizers" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$BASE"
EXPOSE 9100
ENTRYPOINT ["tini", "--", "python", "-m", "five.services.rollout"]

FROM platform-five AS opponents
ARG BASE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="five/opponents" \
      org.opencontainers.image.description="Pool of past opponents" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$BASE"
EXPOSE 50051 9100
ENTRYPOINT ["tini", "--", "python", "-m", "five.services.opponents"]

FROM rating-five AS evaluator
ARG BASE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="five/evaluator" \
      org.opencontainers.image.description="Rates versions in games during training" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$BASE"
EXPOSE 50051 9100
ENTRYPOINT ["tini", "--", "python", "-m", "five.services.evaluator"]

FROM rating-five AS play
ARG BASE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="five/play" \
      org.opencontainers.image.description="Real-time games of people with and against agents" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$BASE"
EXPOSE 50051 9100
ENTRYPOINT ["tini", "--", "python", "-m", "five.services.play"]

FROM control-five AS controller
ARG BASE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="five/controller" \
      org.opencontainers.image.description="REST API, console and autoscaler of a run" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$BASE"
EXPOSE 8080 9100
ENTRYPOINT ["tini", "--", "python", "-m", "five.services.controller"]

FROM agent-five AS inference
ARG BASE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="five/inference" \
      org.opencontainers.image.description="Batched forward passes of the policy" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$BASE"
EXPOSE 50051 9100
ENTRYPOINT ["tini", "--", "python", "-m", "five.services.inference"]

FROM agent-five AS optimizer
ARG BASE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="five/optimizer" \
      org.opencontainers.image.description="Receives segments, learns, publishes versions" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$BASE"
EXPOSE 50051 9100
ENTRYPOINT ["tini", "--", "python", "-m", "five.services.optimizer"]
