"""Outages long enough for a failure counter or a doubling backoff to overflow."""

from sluice.broker.faults.actions.connections import RefuseConnections

from .incidents import AFTER_API_VERSIONS, PRODUCER, broken, closing, cluster, error, rule
from .probe import Probe, Produce

PROBES = (
    Probe(
        name="long-outage",
        what="More than 60 connections, and then 60 attempts of a batch, fail in a row, with short backoffs.",
        cluster=cluster(
            11,
            broken(0, 4.5, rule(RefuseConnections(how="fin")), closing(AFTER_API_VERSIONS)),
            broken(5.5, 4.5, error("REQUEST_TIMED_OUT", "Produce")),
        ),
        settings={
            **PRODUCER,
            "reconnect.backoff.ms": 5,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 5,
            "retry.backoff.max.ms": 50,
        },
        least=1,
        most=2,
    ),
    Probe(
        name="ten-minutes",
        what="All connections, and then all batches, fail for ten minutes each, with default backoffs.",
        workload=Produce(pause_ms=1000),
        cluster=cluster(
            1330,
            broken(0, 600, rule(RefuseConnections(how="fin")), closing(AFTER_API_VERSIONS)),
            broken(660, 600, error("REQUEST_TIMED_OUT", "Produce")),
        ),
        settings={"enable.idempotence": True, "acks": "all", "delivery.timeout.ms": 900_000},
        least=1,
        most=1,
        virtual_only=True,
    ),
)
