"""Records that cannot be delivered: whether a producer gives up at delivery.timeout.ms, and not earlier (KIP-91)."""

from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.no_response import BlackHole
from sluice.broker.faults.actions.throttle import Throttle

from .incidents import PRODUCER, broken, cluster, down, error, rule
from .probe import Begin, Probe, Produce

PROBES = (
    Probe(
        name="delivery-leader-gone",
        what="The only replica of the partition is killed, and records expire.",
        cluster=cluster(12, down(2, 0.2, 9), brokers=2, partitions=((2,),)),
        settings={**PRODUCER, "delivery.timeout.ms": 2500, "request.timeout.ms": 1000},
    ),
    Probe(
        name="delivery-mute",
        what="Produce is never answered, and records expire while their requests are in flight.",
        cluster=cluster(12, broken(0.2, 9.8, rule(BlackHole(), "Produce"))),
        settings={**PRODUCER, "delivery.timeout.ms": 3000, "request.timeout.ms": 1200},
    ),
    Probe(
        name="delivery-late-answer",
        what="The response to a second attempt arrives after the record expired, although it was written.",
        # The second attempt starts 500 ms after the record; its response arrives before request.timeout.ms.
        cluster=cluster(
            12,
            broken(
                0.2,
                8.8,
                error("REQUEST_TIMED_OUT", "Produce", "1 fail, 3 pass, repeat"),
                rule(Delay(ms=2200, when="after"), "Produce", "1 fail, 2 pass, repeat"),
            ),
        ),
        settings={
            **PRODUCER,
            "retry.backoff.ms": 500,
            "retry.backoff.max.ms": 500,
            "delivery.timeout.ms": 2500,
            "request.timeout.ms": 2400,
        },
    ),
    Probe(
        name="delivery-retries-exhausted",
        what="Produce always fails with retries=3: four attempts are expected, although time is left.",
        cluster=cluster(8, broken(0.2, 6.8, error("REQUEST_TIMED_OUT", "Produce"))),
        settings={**PRODUCER, "retries": 3},
    ),
    Probe(
        name="delivery-throttled",
        what="The broker throttles for longer than delivery.timeout.ms, and queued records expire.",
        cluster=cluster(8, broken(0.2, 7, rule(Throttle(throttle_time_ms=5000), "Produce", "1 fail"))),
        settings={**PRODUCER, "delivery.timeout.ms": 2000, "request.timeout.ms": 1000},
    ),
    Probe(
        name="delivery-config",
        what="delivery.timeout.ms is below linger.ms + request.timeout.ms: the client should reject it.",
        cluster=cluster(2),
        begins=Begin.AT_ONCE,
        settings={**PRODUCER, "delivery.timeout.ms": 1000, "request.timeout.ms": 2000},
        least=1,
    ),
    Probe(
        name="delivery-long-outage",
        what="The leader is gone for longer than request.timeout.ms; queued records are sent afterwards.",
        cluster=cluster(9, down(2, 0.2, 6), brokers=2, partitions=((2,),)),
        settings={**PRODUCER, "request.timeout.ms": 1000},
    ),
    Probe(
        name="in-flight-one",
        what="Responses take 300 ms while records are queued, and one request may be in flight.",
        workload=Produce(pending=5, pause_ms=5),
        cluster=cluster(7, broken(0.2, 5.8, rule(Delay(ms=300), "Produce"))),
        settings={**PRODUCER, "max.in.flight.requests.per.connection": 1, "batch.size": 1},
    ),
)
