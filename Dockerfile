# The broker only: built as a wheel, run as user nobody.
#   docker build -t sluice . && docker run --rm -p 9092:9092 sluice
# To update a base image: docker buildx imagetools inspect python:3.13-slim prints its digest.
FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS build
WORKDIR /src
COPY . .
# The version, because .git is not available here: docker build --build-arg VERSION=0.2.0
ARG VERSION=0.1.0.dev0
ENV SETUPTOOLS_SCM_PRETEND_VERSION=$VERSION
# Constrain to the tested versions; the lock also has development packages, so it is not installed.
RUN python -m venv /opt/sluice \
    && pip install --no-cache-dir -c requirements/dev.lock hatch-vcs hatchling \
    && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /opt/sluice/bin/pip install --no-cache-dir -c requirements/dev.lock /wheel/*.whl

FROM python:3.13.15-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
ARG VERSION=0.1.0.dev0
LABEL org.opencontainers.image.title="kafka-sluice" \
    org.opencontainers.image.description="A Kafka-compatible test broker with real quota enforcement and fault injection" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="$VERSION"
COPY --from=build /opt/sluice /opt/sluice
# Listen on all interfaces, and advertise the address published by `-p 9092:9092`. The admin port stays on loopback
# until KAFKA_SLUICE_ADMIN_HOST and KAFKA_SLUICE_ADMIN_TOKEN are set.
ENV PATH=/opt/sluice/bin:$PATH \
    KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092 \
    KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
USER 65534:65534
EXPOSE 9092 9644
HEALTHCHECK --interval=5s --timeout=3s --start-period=2s CMD ["sluice", "healthcheck"]
ENTRYPOINT ["sluice"]
CMD ["serve"]
