"""Failing Produce requests: the backoff before a batch is resent (KIP-580)."""

from sluice.broker.faults.actions.no_response import BlackHole
from sluice.broker.scenarios.model import MoveLeader, Repeat, Step

from .incidents import PRODUCER, RAMP, SHORT_RAMP, broken, cluster, error, rule
from .probe import TOPIC, Probe, Produce, Setting


def _ramp(name: str, code: str, what: str, **settings: Setting) -> Probe:
    return Probe(
        name=name,
        what=what,
        cluster=cluster(9, broken(0, 8, error(code, "Produce", RAMP))),
        settings=PRODUCER | {key.replace("_", "."): value for key, value in settings.items()},
    )


PROBES = (
    _ramp(
        "produce-not-leader",
        "NOT_LEADER_OR_FOLLOWER",
        "Produce fails with NOT_LEADER_OR_FOLLOWER (6), while Metadata reports the same leader.",
    ),
    _ramp("produce-timed-out", "REQUEST_TIMED_OUT", "Produce fails with REQUEST_TIMED_OUT (7)."),
    _ramp("produce-not-enough-replicas", "NOT_ENOUGH_REPLICAS", "Produce fails with NOT_ENOUGH_REPLICAS (19)."),
    _ramp(
        "produce-then-success",
        "REQUEST_TIMED_OUT",
        "Batches fail several times and then succeed: the next batch's backoff should restart.",
    ),
    _ramp(
        "produce-constant-backoff",
        "REQUEST_TIMED_OUT",
        "Produce fails; retry.backoff.ms equals retry.backoff.max.ms.",
        retry_backoff_ms=200,
        retry_backoff_max_ms=200,
    ),
    _ramp(
        "produce-base-above-max",
        "REQUEST_TIMED_OUT",
        "Produce fails; retry.backoff.ms is above retry.backoff.max.ms.",
        retry_backoff_ms=500,
        retry_backoff_max_ms=200,
    ),
    Probe(
        name="produce-mute",
        what="Produce is not answered until the client gives the request up.",
        cluster=cluster(11, broken(0, 10, rule(BlackHole(), "Produce", SHORT_RAMP))),
        settings={**PRODUCER, "request.timeout.ms": 600},
    ),
    Probe(
        name="produce-two-partitions",
        what="Batches of one partition fail, and later those of another.",
        workload=Produce(partitions=2),
        cluster=cluster(
            8,
            broken(0, 7, error("REQUEST_TIMED_OUT", "Produce", RAMP, partition=0)),
            broken(0.7, 6.3, error("REQUEST_TIMED_OUT", "Produce", RAMP, partition=1)),
            partitions=((1,), (1,)),
        ),
        settings=PRODUCER,
    ),
    Probe(
        name="produce-new-leader",
        what="The leader moves back and forth; the old leader's responses name the new one (KIP-951).",
        cluster=cluster(
            9,
            *(
                Step(at=f"{at}ms", move_leader=MoveLeader(topic=TOPIC, to=to), repeat=Repeat(every="1600ms", times=5))
                for at, to in ((200, 2), (1000, 1))
            ),
            brokers=2,
            partitions=((1, 2),),
        ),
        # Long, to distinguish waiting from not waiting.
        settings={**PRODUCER, "retry.backoff.ms": 500, "retry.backoff.max.ms": 1000},
    ),
    Probe(
        name="produce-no-retry",
        what="Produce fails with non-retriable errors: 29 (not authorized) and 10 (too large).",
        cluster=cluster(
            6,
            broken(0, 2, error("TOPIC_AUTHORIZATION_FAILED", "Produce", "1 fail, 2 pass, repeat")),
            broken(3, 2, error("MESSAGE_TOO_LARGE", "Produce", "1 fail, 2 pass, repeat")),
        ),
        settings=PRODUCER,
    ),
)
