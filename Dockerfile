# The broker alone: built as a wheel, run as nobody.
#   docker build -t sluice . && docker run --rm -p 9092:9092 sluice
FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
# The tag, as there is no git in here: docker build --build-arg VERSION=0.2.0
ARG VERSION=0.1.0.dev0
ENV SETUPTOOLS_SCM_PRETEND_VERSION=$VERSION
# The lock holds the versions that the tests ran with; it is the dev lock, so it constrains and is not installed.
RUN python -m venv /opt/sluice \
    && pip install --no-cache-dir -c requirements/dev.lock hatch-vcs hatchling \
    && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel . \
    && /opt/sluice/bin/pip install --no-cache-dir -c requirements/dev.lock /wheel/*.whl

FROM python:3.13-slim
COPY --from=build /opt/sluice /opt/sluice
# Reachable from outside the container, and told to clients as what `-p 9092:9092` makes of it. The admin port stays on
# loopback until there is a token for it (KAFKA_SLUICE_ADMIN_HOST, KAFKA_SLUICE_ADMIN_TOKEN).
ENV PATH=/opt/sluice/bin:$PATH \
    KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:9092 \
    KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092
USER 65534:65534
EXPOSE 9092 9644
HEALTHCHECK --interval=5s --timeout=3s --start-period=2s CMD ["sluice", "healthcheck"]
ENTRYPOINT ["sluice"]
CMD ["serve"]
