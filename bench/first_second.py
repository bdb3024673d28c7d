"""The first second of a consumer in a group, as each client sends it: connections, requests and their versions.

The sequences are those of the consumers in tools/suite/clients.py, as the journal shows them. `python -m
bench.first_second [NAME=COMMAND...]` prints the CPU time of sluice and of other brokers for each (tools/suite).
"""

import argparse
import re
import statistics
from collections.abc import Mapping

from bench.wire_client import Client, hello, metadata, produce_record
from sluice.protocol.apis import API_KEYS
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID
from tests.support.messages import request
from tools.suite.processes import SLUICE, cpu_s, running

# Each line is a connection and what is sent on it: to the bootstrap address (0), the broker (1) or the coordinator (2).
SEQUENCES = {
    "aiokafka": """
        0 ApiVersions-0 Metadata-5
        1 ApiVersions-0 Metadata-5 FindCoordinator-1
        2 ApiVersions-0 JoinGroup-5 SyncGroup-3 OffsetFetch-3
        1 ListOffsets-3 Fetch-11""",
    "confluent-kafka": """
        0 ApiVersions-3 Metadata-13 FindCoordinator-2
        1 ApiVersions-3 Metadata-13
        2 ApiVersions-3
        1 Metadata-13 FindCoordinator-2
        2 JoinGroup-5
        1 Metadata-13
        2 SyncGroup-3 Heartbeat-3 OffsetFetch-9
        1 ListOffsets-7 Fetch-16""",
    "kafka-python": """
        0 ApiVersions-4 Metadata-13
        1 ApiVersions-4 FindCoordinator-6
        2 ApiVersions-4 JoinGroup-7 SyncGroup-5
        1 Metadata-13
        2 OffsetFetch-8
        1 ListOffsets-11 Fetch-12""",
    "java": """
        0 ApiVersions-5 Metadata-13 FindCoordinator-6
        1 ApiVersions-5
        2 ApiVersions-5 JoinGroup-9 SyncGroup-5 OffsetFetch-9
        1 ListOffsets-11 Fetch-18""",
}
_CONNECTIONS = 3
_TOPIC_ID_SINCE = 10  # version of Metadata
_SUBSCRIPTION = b"\0\1" + bytes(4) + b"\xff\xff\xff\xff" + bytes(4)
_TIMES = 100  # enough for clock ticks of 10 ms
_REPETITIONS = 4


def send_first_second(client: Client, sequence: str, topic: str, group_id: str) -> None:
    """Connect a consumer, send its requests one at a time, and disconnect."""
    member = _Member(topic, group_id)
    connections = [client.connect() for _ in range(_CONNECTIONS)]
    for line in sequence.split("\n")[1:]:
        connection, *requests = line.split()
        for one in requests:
            api, _, version = one.partition("-")
            member.send(connections[int(connection)], api, int(version))
    for each in connections:
        each.close()


class _Member:
    """A consumer, and what it knows from responses."""

    def __init__(self, topic: str, group_id: str) -> None:
        self._topic = topic
        self._topic_id = ZERO_UUID
        self._group_id = group_id
        self._member_id = ""
        self._generation_id = -1

    def send(self, client: Client, api: str, version: int) -> None:
        accepted = ErrorCode.MEMBER_ID_REQUIRED if api == "JoinGroup" else ErrorCode.NONE
        response = client.call(self._requests()[api], version, accepted)
        if api == "Metadata" and version >= _TOPIC_ID_SINCE:
            self._topic_id = response.topics[0].topic_id
        elif api == "JoinGroup":
            self._member_id, self._generation_id = response.member_id, response.generation_id
            if response.error_code:
                self.send(client, api, version)

    def _requests(self) -> Mapping[str, Message]:
        name, group_id, member_id = self._topic, self._group_id, self._member_id
        member = {"group_id": group_id, "member_id": member_id, "generation_id": self._generation_id}
        protocols = [{"name": "range", "metadata": _SUBSCRIPTION}]
        timeouts = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000}
        assignments = [{"member_id": member_id, "assignment": _SUBSCRIPTION}]
        topic = {"name": name, "partition_indexes": [0]}
        earliest = {"name": name, "partitions": [{"partition_index": 0, "timestamp": -2}]}
        fetched = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        return {
            "ApiVersions": hello(),
            "Metadata": metadata(name),
            "FindCoordinator": request("FindCoordinator", key=group_id, coordinator_keys=[group_id]),
            "JoinGroup": request(
                "JoinGroup",
                group_id=group_id,
                member_id=member_id,
                protocol_type="consumer",
                protocols=protocols,
                **timeouts,
            ),
            "SyncGroup": request(
                "SyncGroup", **member, protocol_type="consumer", protocol_name="range", assignments=assignments
            ),
            "Heartbeat": request("Heartbeat", **member),
            "OffsetFetch": request(
                "OffsetFetch", group_id=group_id, topics=[topic], groups=[{"group_id": group_id, "topics": [topic]}]
            ),
            "ListOffsets": request("ListOffsets", replica_id=-1, topics=[earliest]),
            "Fetch": request(
                "Fetch",
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=50 << 20,
                session_epoch=0,
                topics=[{"topic": name, "topic_id": self._topic_id, "partitions": [fetched]}],
            ),
        }


def _supported(client: Client, sequence: str) -> str:
    """Return a sequence with the greatest versions that client and broker support."""
    supported = client.call(hello(), 0).api_keys
    greatest = {API_KEYS[each.api_key].name: each.max_version for each in supported if each.api_key in API_KEYS}

    def version(found: "re.Match[str]") -> str:
        return f"{found[1]}-{min(int(found[2]), greatest[found[1]])}"

    return re.sub(r"(\w+)-(\d+)", version, sequence)


def _measure(client: Client, sequence: str, topic: str, prefix: str) -> float:
    """Return the milliseconds of CPU time of the broker per first second."""
    before_s = cpu_s(client.pid)
    for number in range(_TIMES):
        send_first_second(client, sequence, topic, f"{prefix}-{number}")
    return (cpu_s(client.pid) - before_s) / _TIMES * 1000


def main() -> None:
    """Measure each broker in turn, several times."""
    parser = argparse.ArgumentParser(prog="python -m bench.first_second", description=__doc__)
    parser.add_argument("commands", nargs="*", metavar="NAME=COMMAND")
    commands = {"sluice": SLUICE} | dict(one.split("=", 1) for one in parser.parse_args().commands)
    topic = "first-second"
    found: dict[tuple[str, str], list[float]] = {}
    for repetition in range(1 + _REPETITIONS):
        for name, command in commands.items():
            with running(command) as (bootstrap, pid):
                client = Client(pid, bootstrap)
                client.call(metadata(topic), 4)
                client.call(produce_record(topic), 7)
                for sequence in SEQUENCES:
                    ms = _measure(client, _supported(client, SEQUENCES[sequence]), topic, f"{sequence}-{repetition}")
                    found.setdefault((sequence, name), []).append(ms)
    for (sequence, name), values in sorted(found.items()):
        print(f"{sequence:<16} {name:<8} {statistics.median(values):6.2f} ms ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
