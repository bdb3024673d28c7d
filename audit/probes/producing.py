"""Produce requests that fail: how long a producer waits before it sends a batch again (KIP-580)."""

from sluice.broker.faults.actions.no_response import BlackHole
from sluice.broker.scenarios.model import MoveLeader, Repeat, Step

from .incidents import PRODUCER, RAMP, SHORT_RAMP, broken, cluster, error, rule
from .probe import TOPIC, Probe, Produce, Setting


def _ramp(name: str, code: str, what: str, **settings: Setting) -> Probe:
    """A batch fails until its waits are as long as they get, then five that fail once, and so on."""
    return Probe(
        name=name,
        what=what,
        workload=Produce(),
        cluster=cluster(9, broken(0, 8, error(code, "Produce", RAMP))),
        settings=PRODUCER | {key.replace("_", "."): value for key, value in settings.items()},
    )


PROBES = (
    _ramp(
        "produce-not-leader",
        "NOT_LEADER_OR_FOLLOWER",
        "Produce is answered NOT_LEADER_OR_FOLLOWER (6), while metadata tell of no other leader.",
    ),
    _ramp("produce-timed-out", "REQUEST_TIMED_OUT", "Produce is answered REQUEST_TIMED_OUT (7)."),
    _ramp("produce-not-enough-replicas", "NOT_ENOUGH_REPLICAS", "Produce is answered NOT_ENOUGH_REPLICAS (19)."),
    _ramp(
        "produce-then-success",
        "REQUEST_TIMED_OUT",
        "Batches fail several times and succeed: the next one's waits begin anew.",
    ),
    _ramp(
        "produce-constant-backoff",
        "REQUEST_TIMED_OUT",
        "Produce fails; retry.backoff.ms and its maximum are the same.",
        retry_backoff_ms=200,
        retry_backoff_max_ms=200,
    ),
    _ramp(
        "produce-base-above-max",
        "REQUEST_TIMED_OUT",
        "Produce fails; the maximum is below retry.backoff.ms.",
        retry_backoff_ms=500,
        retry_backoff_max_ms=200,
    ),
    Probe(
        name="produce-mute",
        what="Produce is not answered at all, until the client gives that request up.",
        workload=Produce(),
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
        what="The leader moves to and fro; who is not the leader any more says who is (KIP-951).",
        workload=Produce(),
        cluster=cluster(
            9,
            *(
                Step(at=f"{at}ms", move_leader=MoveLeader(topic=TOPIC, to=to), repeat=Repeat(every="1600ms", times=5))
                for at, to in ((200, 2), (1000, 1))
            ),
            brokers=2,
            partitions=((1, 2),),
        ),
        # Long, so that waiting for it cannot be mistaken for not waiting.
        settings={**PRODUCER, "retry.backoff.ms": 500, "retry.backoff.max.ms": 1000},
    ),
    Probe(
        name="produce-no-retry",
        what="Produce is answered with what no retry helps against: 29 (not authorized) and 10 (too large).",
        workload=Produce(),
        cluster=cluster(
            6,
            broken(0, 2, error("TOPIC_AUTHORIZATION_FAILED", "Produce", "1 fail, 2 pass, repeat")),
            broken(3, 2, error("MESSAGE_TOO_LARGE", "Produce", "1 fail, 2 pass, repeat")),
        ),
        settings=PRODUCER,
    ),
)
