"""Ordinary uses of a client with its default settings, in which an expert would find little to criticize."""

from collections.abc import Mapping

from tools.lint.job import Job
from tools.lint.scene import Scene

# Three brokers, of which one is restarted under the clients.
_ELECTIONS: dict[str, str | float] = {"sluice.election.delay.ms": 200}

# The client id is the library's own.
SCENES: Mapping[str, Scene] = {
    "produce": Scene(jobs=[Job(role="produce", client_id="", bursts=40, records=5, every_ms=100)]),
    "produce many": Scene(
        jobs=[Job(role="produce", client_id="", bursts=20, records=300, size=1_000, every_ms=200, wait=False)],
        topics={"orders": 6},
    ),
    "consume in a group": Scene(
        jobs=[Job(role="consume", client_id="", group="shop", for_ms=12_000)], preload={"orders": 500}, feed_ms=20
    ),
    "consume in a group of two": Scene(
        jobs=[
            Job(role="consume", client_id="", group="shop", for_ms=10_000, topics=("orders", "returns")),
            Job(role="consume", client_id="", group="shop", for_ms=5_000, start_ms=3_000, topics=("orders", "returns")),
        ],
        topics={"orders": 4, "returns": 2},
        preload={"returns": 100},
        feed_ms=20,
    ),
    "consume an idle topic": Scene(jobs=[Job(role="consume", client_id="", group="shop", for_ms=8_000)]),
    "consume without a group": Scene(
        jobs=[Job(role="consume", client_id="", for_ms=5_000)], preload={"orders": 500}, feed_ms=20
    ),
    "transactions": Scene(
        jobs=[Job(role="produce", client_id="", transactional_id="shop", bursts=15, records=20, every_ms=100)]
    ),
    "copy in transactions": Scene(
        jobs=[Job(role="copy", client_id="", group="shop", transactional_id="shop", for_ms=8_000)],
        topics={"orders": 2, "copies": 2},
        preload={"orders": 300},
        feed_ms=20,
    ),
    "restart of a broker, producing": Scene(
        jobs=[Job(role="produce", client_id="", bursts=60, records=5, every_ms=100)],
        topics={"orders": 6}, restart_ms=2_000, down_ms=2_000, fails=True,
        brokers=3, properties=_ELECTIONS,
    ),
    "restart of a broker, consuming": Scene(
        jobs=[Job(role="consume", client_id="", group="shop", for_ms=10_000)],
        topics={"orders": 6}, restart_ms=3_000, down_ms=2_000, feed_ms=20, fails=True,
        brokers=3, properties=_ELECTIONS,
    ),
    "quota, producing": Scene(
        jobs=[Job(role="produce", client_id="", bursts=30, records=20, size=1_000, every_ms=100, wait=False)],
        quota={"produce": 100_000},
    ),
    "quota, consuming": Scene(
        jobs=[Job(role="consume", client_id="", group="shop", for_ms=8_000)],
        preload={"orders": 4_000}, feed_ms=20, quota={"fetch": 50_000},
    ),
}  # fmt: skip
