# One image a service: `docker build --target rollout -t five/rollout .`, or `make images` for all of them.
#
# What is installed is pinned with its hashes in deploy/images/locks (deploy/images/lock.py), but for torch.
# Images share their layers: the base; runtime (init, user); platform (packages that every service imports); what some
# services need besides (torch, REST); the project's own wheel, which changes most often; and no layer of their own.

ARG BASE=python:3.11-slim-bookworm

# ---- built here, not shipped -----------------------------------------------------------------------------------------

# Where the base's Python is Debian's own, its headers are a package of their own.
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

# Native code is compiled in a layer of its own: a change of Python code leaves it as it is. What is newer than what is told
# by time stamps, and those differ from clone to clone, so all sources get the same one.
FROM compiler AS core
# Compilers that run at once; empty: one a processor.
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

# The console's pages, built once for all platforms. Node comes from PyPI; what npm fetches is pinned by the lock file.
FROM ${BASE} AS console
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=bind,source=deploy/images/locks,target=/locks \
    python -m venv --without-pip /opt/node \
 && pip --python /opt/node/bin/python install -q --no-deps --require-hashes -r /locks/console.txt
WORKDIR /src
# Another registry than npm's own: --build-arg NPM_REGISTRY=https://...
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

# ---- what the images share -------------------------------------------------------------------------------------------

FROM ${BASE} AS runtime
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tini >/dev/null \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/*.log /var/log/apt \
 && groupadd --gid 10001 five \
 && useradd --uid 10001 --gid 10001 --home-dir /var/lib/five --no-create-home --shell /usr/sbin/nologin five \
 && install -d -o 10001 -g 10001 /var/lib/five /var/lib/five/blobs
# Byte code is written when an image is built: at run time its file system is read-only.
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

# The Kubernetes client comes twice, the second time for asyncio; the controller uses the first.
FROM platform AS control
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=bind,source=deploy/images/locks,target=/locks \
    pip --python /opt/five/bin/python install -q --no-deps --require-hashes -r /locks/control.txt \
 && rm -rf /opt/five/lib/python3*/site-packages/kubernetes/aio

# torch's flavour: TORCH_INDEX is looked into besides pip's own index, https://download.pytorch.org/whl/cu130 for CUDA 13.
# What torch brings for building extensions and for its own tests is taken out: there is no compiler here.
FROM platform AS agent
ARG TORCH=torch==2.13.0
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=bind,source=deploy/images/locks,target=/locks \
    pip --python /opt/five/bin/python install -q --no-deps --require-hashes -r /locks/agent.txt \
 && pip --python /opt/five/bin/python install -q ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "$TORCH" \
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
      org.opencontainers.image.description="Games of Dota 2 behind gRPC, for rollouts elsewhere" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$BASE"
EXPOSE 50051 9100
ENTRYPOINT ["tini", "--", "python", "-m", "five.services.dota_env"]

FROM platform-five AS rollout
ARG BASE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="five/rollout" \
      org.opencontainers.image.description="Plays games and sends what it saw to the optimizers" \
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
      org.opencontainers.image.description="Keeper of the pool of past selves" \
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
      org.opencontainers.image.description="Rates versions in games beside training" \
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
      org.opencontainers.image.description="Games at real speed that people play with and against agents" \
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
      org.opencontainers.image.description="Takes experience in, learns, publishes versions" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="$BASE"
EXPOSE 50051 9100
ENTRYPOINT ["tini", "--", "python", "-m", "five.services.optimizer"]
