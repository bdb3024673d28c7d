"""Rules about consumers: each fires, stays silent on healthy use, and stays silent without evidence."""

from collections.abc import Callable, Iterable
from functools import partial

from sluice.journal_events import FetchedRecords, TopicPartition, Value
from sluice.protocol.errors import ErrorCode
from tests.support.journals import Journal, fetched
from tests.support.rule_cases import RuleCase, rule_tests, silence_test, texts

DEFAULTS: dict[str, Value] = {
    "max_wait_ms": 500,
    "min_bytes": 1,
    "max_bytes": 52428800,
    "isolation_level": 0,
    "session_id": 0,
    "session_epoch": -1,
    "partition_max_bytes": 1048576,
}
MEMBER: dict[str, Value] = {"member_id": "m-1", "generation_id": 1}


def fetch(journal: Journal, at_ms: float, *partitions: TopicPartition, wait_ms: float = 1, **sent: int) -> None:
    """Add a fetch with these fields, or without any (fields=0), as in journals of older versions."""
    fields = {**DEFAULTS, **sent} if sent.pop("fields", 1) else {}
    returned: dict[str, Value] = {"session_id": 0} if fields else {}
    journal.request("Fetch", at_ms, at_ms + wait_ms, partitions=partitions, sent=fields, returned=returned)


def commit(journal: Journal, at_ms: float, offset: int, *, group_id: str = "g", errors: Iterable[int] = ()) -> None:
    one = TopicPartition(topic="t", partition=0, offset=offset)
    journal.request(
        "OffsetCommit", at_ms, at_ms + 1, partitions=[one], group_id=group_id, sent=MEMBER, errors=errors
    )  # fmt: skip


def idle(*, step_ms: float, count: int = 100, **sent: int) -> Journal:
    """Return the journal of a consumer at the end of a partition."""
    made = Journal()
    for number in range(count):
        fetch(made, number * step_ms, fetched("t", 0, 7, 0, 7), wait_ms=step_ms / 2, **sent)
    return made


def reads(step: int, until: int, *, nbytes: int = 1000, step_ms: float = 10, **sent: int) -> Journal:
    """Return the journal of a consumer that reads a partition with `until` records, some at a time."""
    made = Journal()
    for number, offset in enumerate(range(0, until + 1, step)):
        size = nbytes if offset < until else 0
        fetch(made, number * step_ms, fetched("t", 0, offset, size, until), **sent)
    return made


def tiny(*, step_ms: float, count: int, nbytes: int = 100, **sent: int) -> Journal:
    made = Journal()
    for number in range(count):
        fetch(made, number * step_ms, fetched("t", 0, number, nbytes, number + 1), **sent)
    return made


def out_of_range(*, errors: Iterable[int] = (ErrorCode.OFFSET_OUT_OF_RANGE,), rule_id: str = "") -> Journal:
    made = Journal()
    made.request(
        "Fetch", 0, 1, partitions=[TopicPartition(topic="t", partition=0, offset=5)], sent=DEFAULTS,
        returned={"session_id": 0}, errors=errors, rule_id=rule_id,
    )  # fmt: skip
    return made


def lags(lags: Iterable[int], *, step_ms: float = 6000) -> Journal:
    """Return the journal of a consumer that reads 100 records per step, with these lags."""
    made = Journal()
    for number, lag in enumerate(lags):
        fetch(made, number * step_ms, fetched("t", 0, number * 100, 5000, number * 100 + lag))
    return made


def commits(
    offsets: Iterable[int], *, step_ms: float = 20, fetches: bool = True, group_ids: Iterable[str] = ("g",)
) -> Journal:
    """Return the journal of a consumer that fetches up to each offset, and commits it."""
    made = Journal()
    for number, offset in enumerate(offsets):
        if fetches:
            fetch(made, number * step_ms, fetched("t", 0, offset, 500, offset + 1))
        for group_id in group_ids:
            commit(made, number * step_ms + 5, offset, group_id=group_id)
    return made


def reads_then_commits(seconds: int, records: int, *, commits_each: bool = False, fields: int = 1) -> Journal:
    """Return the journal of a consumer that commits, reads for some seconds, and commits again."""
    made = Journal()
    commit(made, 0, 0)
    for second in range(seconds + 1):
        offset = second * records // seconds
        fetch(made, second * 1000 + 10, fetched("t", 0, offset, 5000, records), fields=fields)
        if commits_each:
            commit(made, second * 1000 + 20, offset)
    commit(made, seconds * 1000 + 100, records)
    return made


def reads_after_an_idle_time() -> Journal:
    """Return the journal of a consumer that commits soon after it has read 5,000 records, but has had none before."""
    made = Journal()
    commit(made, 0, 0)
    for at_ms in range(1000, 60_000, 1000):
        fetch(made, at_ms, fetched("t", 0, 0, 0, 0))
    fetch(made, 60_000, fetched("t", 0, 0, 50_000, 5000))
    commit(made, 62_000, 5000)
    return made


def commits_ahead(committed: int, *, fetches_after: int = 3, high_watermark: int = 1000, seek: bool = False) -> Journal:
    """Return the journal of a consumer that has read up to offset 100 when it commits."""
    made = Journal()
    fetch(made, 0, fetched("t", 0, 0, 5000, high_watermark))
    fetch(made, 10, fetched("t", 0, 100, 5000, high_watermark))
    commit(made, 20, committed)
    for number in range(fetches_after):
        offset = number * 10 if seek else 200 + number * 10
        fetch(made, 30 + number, fetched("t", 0, offset, 500, high_watermark))
    return made


def goes_back(*, seek: bool = False, groups: int = 1, fetches: bool = True) -> Journal:
    made = Journal()
    if fetches:
        fetch(made, 0, fetched("t", 0, 0, 5000, 100))
        fetch(made, 10, fetched("t", 0, 100, 0, 100))
    for number in range(groups):
        commit(made, 15, 1, group_id=f"g{number}")
    commit(made, 20, 100, group_id="g0")
    if seek:
        fetch(made, 25, fetched("t", 0, 90, 500, 100))
    elif fetches:
        fetch(made, 25, fetched("t", 0, 100, 0, 100))
    commit(made, 30, 90, group_id="g0")
    return made


def rejected(codes: Iterable[int], *, rule_id: str = "", sent: dict[str, Value] = MEMBER) -> Journal:
    made = Journal()
    for number, code in enumerate(codes):
        one = TopicPartition(topic="t", partition=0, offset=number)
        made.request(
            "OffsetCommit", number, number + 1, partitions=[one], group_id="g", sent=sent, errors=[code],
            rule_id=rule_id,
        )  # fmt: skip
    return made


def joins(group_ids: Iterable[str], *, fields: bool = True) -> Journal:
    made = Journal()
    for number, group_id in enumerate(group_ids):
        sent: dict[str, Value] = {
            "member_id": "", "session_timeout_ms": 45000, "rebalance_timeout_ms": 300000, "protocols": ["range"],
        }  # fmt: skip
        made.request("JoinGroup", number, number + 1, group_id=group_id, sent=sent if fields else {})
    return made


UUIDS = [f"test-{number}e6b1c2d-1111-4222-8333-0123456789ab" for number in range(6)]

CASES = {
    "fetches-without-wait": RuleCase(
        "with a wait of 0 ms",
        partial(idle, step_ms=20, max_wait_ms=0),
        partial(idle, step_ms=500),
        partial(idle, step_ms=20, max_wait_ms=0, fields=0),
    ),
    "fetches-cut": RuleCase(
        "the limit is 1,000 bytes",
        partial(reads, 10, 1000, partition_max_bytes=1000),
        partial(reads, 10, 1000, nbytes=1_000_000),  # a backlog with the default limit
        partial(reads, 10, 100, partition_max_bytes=1000),
    ),
    "tiny-fetches": RuleCase(
        "1,000 responses",
        partial(tiny, step_ms=5, count=1000),
        partial(tiny, step_ms=20, count=1000),
        partial(tiny, step_ms=5, count=1000, fields=0),
    ),
    "offset-out-of-range": RuleCase(
        "OFFSET_OUT_OF_RANGE: 1",
        out_of_range,
        partial(out_of_range, errors=[]),
        partial(out_of_range, rule_id="fault-1"),
    ),
    "lag-grows": RuleCase(
        "grew from 100 to 6,000 records in 36 s",
        partial(lags, [100, 1000, 2000, 3000, 4000, 5000, 6000]),
        partial(lags, [6000, 5000, 6000, 5000, 4000, 5000, 6000]),
        partial(lags, [100, 2000, 6000]),
    ),
    "commit-per-record": RuleCase(
        "50 within",
        partial(commits, range(101)),
        partial(commits, range(101), step_ms=1000),
        partial(commits, range(40)),
    ),
    "rare-commits": RuleCase(
        "5,000 records of t-0 in 40 s",
        partial(reads_then_commits, 40, 5000),
        partial(reads_then_commits, 40, 5000, commits_each=True),
        partial(reads_then_commits, 40, 5000, fields=0),
    ),
    "commit-ahead": RuleCase(
        "committed offset 500 of t-0, but two fetches later the client had not fetched beyond 220",
        partial(commits_ahead, 500),
        partial(commits_ahead, 150),
        partial(commits_ahead, 500, fetches_after=1),
    ),
    "commit-goes-back": RuleCase("again: 1", goes_back, partial(commits, range(20)), partial(goes_back, fetches=False)),
    "commits-rejected": RuleCase(
        "UNKNOWN_MEMBER_ID: 1, with ILLEGAL_GENERATION: 1",
        partial(rejected, [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION]),
        partial(rejected, [ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS]),
        partial(rejected, [ErrorCode.UNKNOWN_MEMBER_ID] * 2, rule_id="fault-1"),
    ),
    "group-per-run": RuleCase(
        "6 groups with generated names",
        partial(joins, UUIDS),
        partial(joins, ["orders", "orders-v2", "orders-2024", "returns", "audit", "audit-1"]),
        partial(joins, UUIDS, fields=False),
    ),
}


test_rule, test_all_rules_have_a_case = rule_tests(CASES, "consuming")


SILENT: dict[str, tuple[str, Callable[[], Journal]]] = {
    "67 empty fetches in 10 s": ("fetches-without-wait", partial(idle, step_ms=150, max_wait_ms=0)),
    "a low limit that is enough": ("fetches-cut", partial(reads, 1000, 1000, partition_max_bytes=1000)),
    "fetches above 1 KiB": ("tiny-fetches", partial(tiny, step_ms=5, count=1000, nbytes=2000)),
    "a lag of a few hundred records": ("lag-grows", partial(lags, [100, 200, 300, 400, 500, 600, 700])),
    "a lag that does not double": ("lag-grows", partial(lags, [9000, 9500, 10000, 10500, 11000, 11500])),
    "commits of ten records": ("commit-per-record", partial(commits, range(0, 1000, 10))),
    "few records between commits": ("rare-commits", partial(reads_then_commits, 40, 500)),
    "records that came just before the commit": ("rare-commits", reads_after_an_idle_time),
    "a client that went back after the commit": ("commit-ahead", partial(commits_ahead, 500, seek=True)),
    "a client that went back before the commit": ("commit-goes-back", partial(goes_back, seek=True)),
    "a client that has left before": (
        "commits-rejected",
        partial(rejected, [ErrorCode.UNKNOWN_MEMBER_ID], sent={"member_id": "", "generation_id": 2}),
    ),
    "a client with several groups": ("commit-goes-back", partial(goes_back, groups=2)),
}


test_silence = silence_test(SILENT)


def test_commits_beyond_the_end_are_ahead_although_the_client_went_back() -> None:
    assert len(texts("commit-ahead", commits_ahead(5000, seek=True))) == 1


def test_a_commit_is_ahead_although_the_client_reaches_it_later() -> None:
    made = commits_ahead(500)
    fetch(made, 50, fetched("t", 0, 600, 500, 1000))
    commit(made, 40, 240)
    assert len(texts("commit-ahead", made)) == 1


def test_commits_of_earlier_generations_are_rejected() -> None:
    assert len(texts("commits-rejected", rejected([ErrorCode.ILLEGAL_GENERATION] * 2))) == 1


def test_the_time_to_the_first_commit_counts(journal: Journal) -> None:
    for second in range(41):
        fetch(journal, second * 1000, fetched("t", 0, second * 100, 5000, 4100))
    commit(journal, 41_000, 4100)
    assert len(texts("rare-commits", journal)) == 1


def test_a_read_committed_consumer_at_the_last_stable_offset_is_not_cut(journal: Journal) -> None:
    for number in range(50):
        end = FetchedRecords(bytes=100, high_watermark=1000, last_stable_offset=number + 1)
        one = TopicPartition(topic="t", partition=0, offset=number, fetched=end)
        fetch(journal, number, one, isolation_level=1, partition_max_bytes=1000)
    assert texts("fetches-cut", journal) == []


def test_followers_are_no_consumers() -> None:
    assert texts("fetches-without-wait", idle(step_ms=20, max_wait_ms=0, replica_id=2)) == []
