# The server with its default models inside.
#
#   docker build -t antiphon .
#   docker run -p 8000:8000 antiphon
#
# For NVIDIA GPUs: docker build --build-arg EXTRA=cuda -t antiphon:cuda .
#                  docker run --gpus all -p 8000:8000 antiphon:cuda

FROM python:3.11-slim-bookworm AS build
ARG EXTRA=cpu
ENV ANTIPHON_CACHE_FOLDER=/var/lib/antiphon \
    PIP_NO_CACHE_DIR=1
WORKDIR /opt/antiphon
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libnuma1 \
    && rm -rf /var/lib/apt/lists/*
COPY . .
# The same set-up and the same fetching of models as `make serve`.
RUN python scripts/set_up.py --backend "${EXTRA}" \
    && .venv/bin/antiphon models fetch --for serve


FROM python:3.11-slim-bookworm
# vLLM's kernels need libnuma. With a compiler, models are compiled in the background for the next
# start, which makes steps about a third shorter.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ libnuma1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --create-home --home-dir /var/lib/antiphon --uid 10001 antiphon
COPY --from=build /opt/antiphon /opt/antiphon
COPY --from=build --chown=antiphon /var/lib/antiphon /var/lib/antiphon
ENV PATH=/opt/antiphon/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    ANTIPHON_HOST=0.0.0.0 \
    ANTIPHON_PORT=8000 \
    ANTIPHON_CACHE_FOLDER=/var/lib/antiphon
# antiphon, by number, so that Kubernetes can tell that it is not root.
USER 10001
WORKDIR /var/lib/antiphon
EXPOSE 8000
# Loading and warming up take a while.
HEALTHCHECK --interval=10s --timeout=5s --start-period=180s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/ready', timeout=4)"]
CMD ["antiphon", "serve"]
