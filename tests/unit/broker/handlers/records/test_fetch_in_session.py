"""Fetches in a session of one partition: the short way has the same results as the way of all others."""

from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.broker.journal.reader import JournalReader
from sluice.broker.replica.fetch_session import FetchSessionCache
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.fetch import FetchRequest, ForgottenTopic
from sluice.quotas.entity import QuotaEntity
from tests.support.records import batch_of, fetch, produce
from tests.support.virtual_broker import JOURNAL, VirtualBroker

SHORT_WAY = "sluice.broker.handlers.records.fetch.fetch_one"
SESSION_ID = 5
PROFILES = ("by-version", "by-version", "kip-13", "kafka-1.0", "kafka-3.7", "kafka-4.4")

# What happens: a fetch (with its fields) or another event.
FETCHES = st.fixed_dictionaries(
    {
        "offset": st.sampled_from((0, 1, 1, 2, 2, 3, 4, 9)),
        "min_bytes": st.sampled_from((0, 1, 1, 1, 400, 10_000)),
        "max_bytes": st.sampled_from((0, 300, 1 << 20, 1 << 20, 1 << 20)),
        "partition_max_bytes": st.sampled_from((0, 300, 1 << 20, 1 << 20, 1 << 20)),
        "isolation_level": st.sampled_from((0, 0, 1)),
        "max_wait_ms": st.sampled_from((0, 0, 100)),
        "current_leader_epoch": st.sampled_from((-1, 0, 0, 0, 3)),
        "partition": st.sampled_from((0, 0, 0, 0, 0, 0, 1, 7)),
        "names": st.sampled_from(("partition", "partition", "partition", "nothing", "another", "forgets")),
        "epoch": st.sampled_from(("next",) * 8 + ("same", "full", "final")),
        "is_other_connection": st.sampled_from((False,) * 5 + (True,)),
    }
)
EVENTS = st.sampled_from(("write", "write", "low quota", "high quota", "no quota", "time", "delete"))


FETCH = {
    "min_bytes": 1, "max_bytes": 1 << 20, "partition_max_bytes": 1 << 20, "isolation_level": 0, "max_wait_ms": 0,
    "current_leader_epoch": 0, "partition": 0, "names": "partition", "epoch": "next", "is_other_connection": False,
}  # fmt: skip


class History:
    """One broker, a client with a session, and everything that can be observed."""

    def __init__(self, version: int, profile: str) -> None:
        self.broker = VirtualBroker(JOURNAL, f"quota.profile={profile}")
        self.version = version
        topic = self.broker.topic("t", partitions=2)
        self.topic_id = topic.topic_id if version >= 13 else bytes(16)
        self.writer = self.broker.client("writer")
        self.client = self.broker.client("client")
        self.other = self.broker.client("client")
        self.received: list[tuple[float, bytes]] = []
        for client in (self.client, self.other):
            client.on_bytes = lambda data: self.received.append((self.broker.now_ms, bytes(data)))
        self.epoch = 1
        for _ in range(3):
            self.writer.call(produce(9, batch_of(300)), 9)
        opening = self._fetch(offset=0)
        opening.session_epoch = 0
        self.client.send(opening, version)
        self.broker.advance(1)

    def _fetch(self, **fields: Any) -> FetchRequest:
        topic = "" if self.version >= 13 else "t"
        return fetch(topic=topic, topic_id=self.topic_id, **fields)

    def fetch(
        self, names: str, epoch: str, is_other_connection: bool, current_leader_epoch: int, **fields: Any
    ) -> None:
        request = self._fetch(current_leader_epoch=current_leader_epoch, **fields)
        request.session_id = SESSION_ID
        request.session_epoch = {"next": self.epoch, "same": self.epoch - 1, "full": 0, "final": -1}[epoch]
        self.epoch = {"next": self.epoch + 1, "full": 1}.get(epoch, self.epoch)
        if names == "nothing":
            request.topics = []
        elif names == "another":
            request.topics = [*request.topics, *self._fetch(partition=1).topics]
        elif names == "forgets":
            topic = request.topics[0]
            request.forgotten_topics_data = [ForgottenTopic(topic.topic, topic.topic_id, [1])]
        client = self.other if is_other_connection else self.client
        if client.is_open:
            client.send(request, self.version)
            self.broker.settle()

    def happen(self, event: str) -> None:
        fetch_quota = self.broker.broker.quotas.fetch
        quotas = {"low quota": 200.0, "high quota": 1e9, "no quota": None}
        if event in quotas:
            fetch_quota.set_quota(QuotaEntity(None, "client"), quotas[event])
        elif event == "write" and "t" in self.broker.cluster.topics:
            self.writer.call(produce(9, batch_of(300)), 9)
        elif event == "delete" and "t" in self.broker.cluster.topics:
            self.writer.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        else:
            self.broker.advance(150)

    def outcome(self) -> tuple[object, ...]:
        self.broker.advance(20_000)  # longer than any throttle time here
        broker = self.broker.broker
        assert self.broker.cluster.journal is not None
        journal = JournalReader(self.broker.cluster.journal, self.broker.clock)
        sessions = broker.fetch_sessions
        session = sessions.find(SESSION_ID)
        state = session and (
            session.epoch,
            session.last_used_ms,
            [(key, i.request, i.high_watermark, i.log_start_offset) for key, i in session.partitions.items()],
        )
        now_ms = self.broker.clock.wall_ms()
        traffic = [topic.traffic_on(broker.node_id).bytes_out for topic in self.broker.cluster.topics.values()]
        routes = [
            (r.label, r.requests, r.errors, r.latency_counts, r.latency_sum_s)
            for r in self.broker.server.exchange.routes
        ]
        usage = [repr(client) for client in broker.quotas.fetch.snapshot(now_ms)]
        return self.received, journal.events(), state, len(sessions), traffic, routes, usage


def run(version: int, profile: str, steps: list[dict[str, Any] | str]) -> tuple[object, ...]:
    with patch.object(FetchSessionCache, "_new_id", lambda cache: SESSION_ID):
        history = History(version, profile)
        for step in steps:
            if isinstance(step, str):
                history.happen(step)
            else:
                history.fetch(**step)
        return history.outcome()


@settings(max_examples=2 * settings().max_examples)
@given(
    version=st.sampled_from((7, 10, 11, 12, 13, 18)),
    profile=st.sampled_from(PROFILES),
    steps=st.lists(FETCHES | EVENTS, max_size=8),
)
def test_both_ways_have_the_same_outcome(version: int, profile: str, steps: list[dict[str, Any] | str]) -> None:
    short = run(version, profile, steps)
    with patch(SHORT_WAY, lambda ctx, broker, request: None):
        general = run(version, profile, steps)
    assert short == general
