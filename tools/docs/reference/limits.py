"""docs/explanation/limits.md from the properties and constants in force."""

from pathlib import Path
from typing import NamedTuple

from sluice.broker.controller.configs.client_metrics_manager import _MOST_INSTANCES
from sluice.broker.metadata.new_topic import MAX_PARTITIONS
from sluice.broker.requests.turn_queue import TURN_MS
from sluice.broker.security.acl.acl_store import MAX_PER_REQUEST
from sluice.config.property_table import PROPERTIES
from sluice.protocol.codec.wire import LONGEST_STRING, MAX_ELEMENTS, MAX_TAGGED_FIELDS
from sluice.protocol.records.log_validator import MOST_RECORD_ERRORS
from sluice.text.regex import COSTLY_FACTOR, MOST_INSTRUCTIONS, MOST_REPEATS
from tools.docs.tables import table

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/explanation/limits.md"
_UNLIMITED = {"", "-1", str(2**31 - 1), str(2**63 - 1)}
_HEAD = """\
# Limits

This page lists what a broker bounds, and what happens at each bound. Use it to see what a misbehaving client can do to
a broker that other clients share. Each row is enforced by a property, whose default is shown, or by a constant.

A broker has one event loop for all clients. A connection has one request in flight; the others wait in its socket, as
in Kafka. Requests with many elements are processed in slices, and large record batches in a thread, so that other
clients are served in between.
"""
_STALLS = """\
## Longest stalls

`tools/campaign run stalls` sends the largest requests of an API, and measures the CPU time of each iteration of the
event loop. The figures are from CPython 3.11. Every API was measured with requests of 1, 10 and 100 MB; those that held
the loop for longer than 50 ms at a time were mended and measured again on 2026-12-01. These remain. Kafka's figures are
the times of one thread until the response, on the same machine, for the first such request after a start.
"""
_STALL_ROWS = [
    ["ShareGroupHeartbeat with 110,000 topic names", "1 MB: 0.06 to 0.08 s", "0.8 s"],
    [
        "StreamsGroupHeartbeat with a topology of 130,000 tasks, or almost too large to be stored",
        "8 KB: 0.5 s; 1 MB: 0.2 to 0.3 s",
        "8 KB: 0.01 s, then the assignment in another thread; 1 MB: 0.6 to 1.2 s",
    ],
    ["JoinGroup with 1,000,000 protocols of one name", "4 MB: 0.05 to 0.1 s", "1.8 s"],
    ["ShareFetch with 55,000 partitions", "1 MB: 0.06 s, when its connection ends", "not measured"],
    [
        "AddPartitionsToTxn, AlterConfigs, AlterReplicaLogDirs or DescribeShareGroupOffsets with 1,000,000 names",
        "30 MB and more: 0.05 to 0.11 s, to enlarge a dict",
        "not measured",
    ],
    [
        "AlterShareGroupOffsets, CreateTopics, DescribeQuorum or ElectLeaders with the most elements",
        "90 MB and more: 0.05 to 0.09 s, to copy a list, or to give 100 MB back to the system",
        "not measured",
    ],
    ["the first request to a coordinator", "0.05 to 0.15 s, to import its modules", "at the start"],
    ["TLS: 256 KiB of key updates", "0.03 s in one piece, of 0.3 s", "one of `num.network.threads` threads is busy"],
    [
        "10,000 partitions, or 500,000 other objects, of any requests",
        "0.05 to 0.2 s for each full garbage collection of Python; while long requests of over 1 MB are in "
        "progress, one in ten minutes, which visits their objects, too",
        "pauses of the JVM's collector",
    ],
]
_GROWTH = """\
## What a broker holds

`tools/campaign run growth` measures the memory of each thing that a broker holds, and the CPU time of a Produce of one
record to another topic, compared with that of an empty broker. No request takes time in proportion to what the broker
holds. The figures are from CPython 3.11.7 on two cores that other work shares; they vary by a tenth. Connections end at
19,000, because the system allowed 20,000 open files.
"""
_GROWTH_ROWS = [
    ["partitions", "100,000", "2.2 KB", "1.07", ""],
    ["topics of one partition", "10,000", "4.0 KB", "1.11", ""],
    ["groups with a member and an offset", "10,000", "4.2 KB", "1.06", ""],
    ["connections", "19,000", "4.1 KB", "1.04", ""],
    ["quotas of clients that send requests", "10,000", "2.6 KB", "1.14", "this client has a quota, too"],
    ["fault rules of other topics", "1,000", "6.1 KB", "1.21", "1.16 with ten"],
    ["ACLs", "10,000", "0.7 KB", "1.15", "compared with an authorizer without ACLs"],
    ["events of the journal", "1,000,000", "0.8 KB", "1.33", "each then replaces the oldest; 1.0 up to 100,000"],
]
_OVERLOAD = """\
## Many clients

`tools/campaign run overload` measures the memory of a broker, and the time in which it serves a new client, under three
loads. The figures are the highest of CPython 3.11.7, 3.12.1 and 3.13.0, on two cores that the clients share.
"""
_OVERLOAD_ROWS = [
    [
        "500 clients that read nothing, each with 300 requests for the metadata of 5,000 partitions",
        "241 MB",
        "7 ms (p99); up to 6 s while the first request of each is processed",
    ],
    [
        "500 clients that read nothing, each with a fetch of 55 MB",
        "101 MB",
        "1 ms (p99); up to 4 s while the first data is sent to each",
    ],
    [
        "5,000 idle connections, 2,000 that send a byte per second, 2,000 new ones per second",
        "130 MB",
        "3 ms (p99); at most 64 ms in 18 of 21 runs, 268 ms in one",
    ],
]
_TAIL = """\
A request of 100 MB can need several GB of memory, in Kafka as well: set `socket.request.max.bytes` lower if clients are
not trusted.

## Names of topics

As in Kafka, a name has 1 to 249 of the characters `a-z`, `A-Z`, `0-9`, `.`, `_` and `-`, and is not `.` or `..`.

- `__cluster_metadata`: no topic can have the name of the [metadata log](../storage.md#files).
- `__consumer_offsets`, `__transaction_state`, `__share_group_state`: as in Kafka, clients can create, describe, alter,
  read and delete them. Only the client id `__admin_client` can write to them.
- `__sluice_journal`: the same, but metadata does not mark it as internal.
- A name that equals an existing one except for `.` and `_`: INVALID_TOPIC_EXCEPTION. As in Kafka, one CreateTopics
  request can create both. Their metrics differ, because labels contain the full name.
- A name that equals an existing one except for case: another topic. With a data directory on a case-insensitive file
  system, it cannot be created.
- Any other valid name, such as `meta.properties` or `orders-0`, has no restriction.

## Without a limit

The numbers of topics, groups, committed offsets and ACLs have no limit, as in Kafka: use ACLs or quotas
(`controller_mutation_rate`) against clients that create too many. Fault rules and scenarios come from the admin port,
which only its owner can reach.
"""


class Limit(NamedTuple):
    """A bound: a property, or the text of a constant."""

    subject: str
    bound: str
    effect: str
    kafka: str
    test: str  # file and function below tests/unit


_SAME = "the same"

SECTIONS: dict[str, list[Limit]] = {
    "Connections": [
        Limit("open connections", "max.connections", "further ones wait in the accept queue", _SAME,
              "broker/network/test_acceptor.py::test_connection_above_the_limit_waits_until_another_closes"),
        Limit("open files of the process", "the system's limit - 64", "further connections wait",
              "requests that open files fail, and log directories go offline",
              "../integration/broker/network/test_listener.py::"
              "test_connections_wait_while_few_descriptors_are_left"),
        Limit("connections of one address", "max.connections.per.ip", "further ones are closed", _SAME,
              "broker/network/test_acceptor.py::test_connection_above_the_limit_of_its_address_is_closed"),
        Limit("new connections per second", "max.connection.creation.rate", "further ones wait", _SAME,
              "broker/network/test_acceptor.py::"
              "test_connections_above_the_creation_rate_are_admitted_one_after_the_other"),
    ],
    "Requests and responses": [
        Limit("request size", "socket.request.max.bytes", "the connection is closed before anything is allocated",
              _SAME, "broker/network/test_connection.py::test_announced_frame_size_allocates_no_memory"),
        Limit("requests being received or processed", "queued.max.request.bytes",
              "requests above 256 KiB are not read; those that arrive at less than 64 KiB/s end their connection",
              "no connection is read; slow ones remain",
              "broker/network/test_connection.py::test_large_request_is_not_read_until_memory_is_available"),
        Limit("requests of more than 2 ms in progress", "num.io.threads",
              "further ones wait; shorter requests are served", "all further requests wait",
              "broker/requests/test_long_request.py::test_number_of_long_requests_in_progress_is_bounded"),
        Limit("elements of one array", f"{MAX_ELEMENTS:,}", "the connection is closed", "the same since 4.4",
              "protocol/codec/test_compile.py::test_1_000_000_elements_and_10_000_tagged_fields_are_accepted"),
        Limit("tagged fields of one struct", f"{MAX_TAGGED_FIELDS:,}", "the connection is closed",
              "the same since 4.4",
              "protocol/codec/test_compile.py::test_1_000_000_elements_and_10_000_tagged_fields_are_accepted"),
        Limit("responses that clients do not read", "sluice.queued.max.response.bytes",
              "the connections that have not read for longest are closed", "unlimited: one for each connection",
              "broker/network/test_unsent_responses.py::test_unread_responses_of_all_clients_are_bounded"),
        Limit("deleted records that such responses reference", "sluice.queued.max.response.bytes",
              "the same connections are closed", "sends from files",
              "broker/network/test_unsent_responses.py::test_unread_records_of_deleted_segments_are_bounded"),
        Limit("uninterrupted time of one connection on the event loop", f"{TURN_MS:g} ms",
              "other connections are served first", "one thread per request",
              "broker/requests/test_long_request.py::test_response_in_slices_is_the_response_in_one_piece"),
        Limit("partitions of one CreateTopics or CreatePartitions", f"{MAX_PARTITIONS:,}", "POLICY_VIOLATION", _SAME,
              "broker/handlers/topics/test_create_topics.py::"
              "test_total_partitions_above_the_request_limit_create_nothing"),
        Limit("repeats in a regular expression",
              f"{MOST_REPEATS:,}; a repeat count, Unicode class or named group is {COSTLY_FACTOR} repeats",
              "INVALID_REGULAR_EXPRESSION or INVALID_CONFIG", "unlimited",
              "sluice/text/test_regex.py::test_complex_expression_is_rejected"),
        Limit("RE2 instructions of a regular expression with repeats", f"{MOST_INSTRUCTIONS:,}",
              "INVALID_REGULAR_EXPRESSION or INVALID_CONFIG", "unlimited",
              "sluice/text/test_regex.py::test_complex_expression_is_rejected"),
        Limit("principal name in an OAUTHBEARER token", f"{LONGEST_STRING:,} bytes", "authentication fails",
              "unlimited", "broker/security/sasl/test_unsecured_jws.py::test_invalid_claim_is_rejected"),
        Limit("ACLs of one request", f"{MAX_PER_REQUEST:,}", "INVALID_REQUEST", _SAME,
              "broker/handlers/security/test_create_acls.py::test_excessively_large_request_creates_no_bindings"),
    ],
    "Records": [
        Limit("record batch, compressed", "message.max.bytes", "MESSAGE_TOO_LARGE", _SAME,
              "broker/log/test_partition_log.py::test_updated_config_applies_to_the_next_append"),
        Limit("record batch, decompressed", "socket.request.max.bytes", "MESSAGE_TOO_LARGE",
              "limits each record only", "protocol/records/test_record.py::"
              "test_section_larger_than_the_limit_is_rejected"),
        Limit("errors of single records in a response", f"{MOST_RECORD_ERRORS:,}", "further ones are left out",
              "unlimited", "protocol/records/test_validate.py::test_number_of_returned_record_errors_is_bounded"),
        Limit("records in memory", "sluice.log.memory.bytes", "the oldest segments are deleted",
              "keeps records on disk; retention only",
              "broker/log/test_partition_log.py::test_batch_larger_than_the_memory_limit_evicts_all_other_batches"),
        Limit("deleted records in memory, until the next check", "sluice.log.memory.bytes",
              "they are removed before other records", "keeps them on disk",
              "broker/log/test_deleted_records.py::"
              "test_memory_of_deleted_records_is_used_before_other_records_are_evicted"),
    ],
    "State": [
        Limit("partitions of all fetch sessions of a broker", "sluice.fetch.session.partitions.max",
              "further sessions do not open, and growing ones are closed; clients get full responses", "unlimited",
              "broker/replica/test_fetch_session.py::test_sessions_have_a_limited_number_of_partitions_in_all"),
        Limit("incremental fetch sessions", "max.incremental.fetch.session.cache.slots",
              "idle ones are evicted, else the client gets full responses", _SAME,
              "broker/replica/test_fetch_session.py::"
              "test_client_without_a_slot_gets_full_responses_and_an_evicted_one_gets_an_error"),
        Limit("members of a classic group", "group.max.size", "GROUP_MAX_SIZE_REACHED", _SAME,
              "broker/handlers/groups/test_join_group.py::test_group_size_is_limited"),
        Limit("members of a consumer group", "group.consumer.max.size", "GROUP_MAX_SIZE_REACHED", _SAME,
              "broker/coordinator/group/test_modern_group.py::test_full_group_rejects_new_members_only"),
        Limit("members of a share group", "group.share.max.size", "GROUP_MAX_SIZE_REACHED", _SAME,
              "broker/coordinator/group/test_modern_group.py::test_full_group_rejects_new_members_only"),
        Limit("share sessions of a broker", "group.share.max.share.sessions", "SHARE_SESSION_LIMIT_REACHED", _SAME,
              "broker/handlers/share_groups/test_share_fetch.py::test_sessions_are_limited"),
        Limit("partitions of all share sessions of a broker", "sluice.fetch.session.partitions.max",
              "SHARE_SESSION_LIMIT_REACHED", "unlimited",
              "broker/handlers/share_groups/test_share_fetch.py::test_partitions_of_all_sessions_are_limited"),
        Limit("committed offsets of empty groups", "offsets.retention.minutes", "they expire", _SAME,
              "broker/coordinator/group/test_coordinator.py::"
              "test_offsets_without_members_expire_one_by_one_and_the_last_removes_the_group"),
        Limit("idle producer ids", "producer.id.expiration.ms", "they expire", _SAME,
              "broker/log/test_producer_state.py::test_idle_producers_expire"),
        Limit("idle transactional ids", "transactional.id.expiration.ms", "they expire", _SAME,
              "broker/coordinator/transaction/test_coordinator.py::"
              "test_unused_transactional_id_expires_and_gets_a_new_producer_id"),
        Limit("quota sensors of a client", "an hour without requests", "they expire", _SAME,
              "quotas/test_manager.py::test_bucket_expires_after_more_than_an_hour_without_requests"),
        Limit("telemetry instances", f"{_MOST_INSTANCES:,}", "the least recently active is evicted", _SAME,
              "broker/controller/configs/test_client_metrics_manager.py::"
              "test_least_recently_active_client_is_evicted_above_the_limit"),
        Limit("events of the journal", "sluice.journal.events", "the oldest are overwritten; readers get a gap event",
              "no journal", "broker/journal/test_reader.py::test_gap_has_the_number_of_lost_events"),
        Limit("client ids with metrics of their own", "sluice.metrics.client.ids.max",
              "further ones share the series `__other__`", "unlimited",
              "broker/server/test_metrics.py::test_client_ids_above_the_limit_share_one_series"),
    ],
}  # fmt: skip


def page() -> str:
    """Return the whole page."""
    parts = [_HEAD]
    for title, limits in SECTIONS.items():
        rows = [[limit.subject, _bound(limit.bound), limit.effect, limit.kafka] for limit in limits]
        parts += [f"## {title}\n", table(("what", "bound", "at the bound", "Kafka"), rows)]
    stalls = table(("request", "CPU time in one piece", "Kafka"), _STALL_ROWS)
    overload = table(["load", "memory", "a new client is served within"], _OVERLOAD_ROWS)
    growth = table(["what", "number", "memory of each", "CPU time of a Produce", ""], _GROWTH_ROWS)
    return "\n".join([*parts, _GROWTH, growth, _OVERLOAD, overload, _STALLS, stalls, _TAIL])


def _bound(bound: str) -> str:
    row = PROPERTIES.get(bound)
    if row is None:
        return bound
    default = row.default or ""
    shown = "no limit" if default in _UNLIMITED else "disabled" if default == "0" else f"{int(default):,}"
    return f"`{bound}` ({shown})"
