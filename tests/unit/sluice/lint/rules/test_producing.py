"""Rules about producers: each fires, stays silent on healthy use, and stays silent without evidence."""

from collections.abc import Callable, Iterable

import pytest

from sluice.journal_events import ProducedBatch
from sluice.lint.run import lint
from sluice.protocol.errors import ErrorCode
from tests.support.journals import BEGAN_MS, Journal
from tests.support.rule_cases import RuleCase, rule_tests, texts

ALL, NONE, LEADER = (
    {"acks": -1, "timeout_ms": 30000},
    {"acks": 0, "timeout_ms": 30000},
    {"acks": 1, "timeout_ms": 30000},
)
TIMED_OUT = (ErrorCode.REQUEST_TIMED_OUT,)


def batch(
    at_ms: float = 0, *, records: int = 10, nbytes: int = 5000, compression: str = "none", ahead_ms: float = 0
) -> ProducedBatch:
    """Return a batch with records of this time."""
    of_ms = BEGAN_MS + round(at_ms + ahead_ms)
    return ProducedBatch(
        records=records, bytes=nbytes, compression=compression, first_timestamp_ms=of_ms, max_timestamp_ms=of_ms
    )


def sends(
    times_ms: Iterable[float],
    *,
    lasting_ms: float = 0.5,
    records: int = 10,
    nbytes: int = 5000,
    compression: str = "none",
    ahead_ms: float = 0,
    sent: dict[str, int] = ALL,
    sequences: bool = False,
    errors: Iterable[int] = (),
    fields: bool = True,
) -> Journal:
    """Return the journal of a producer with one batch at each of these times."""
    made = Journal()
    made.connection(-1, answers=True)
    for number, at_ms in enumerate(times_ms):
        one = batch(at_ms, records=records, nbytes=nbytes, compression=compression, ahead_ms=ahead_ms)
        made.batch(
            at_ms,
            at_ms + lasting_ms,
            sequence=number * records if sequences else -1,
            batch=one if fields else None,
            sent=sent if fields else None,
            request_bytes=nbytes + 50,
            errors=errors,
        )
    return made


def every(step_ms: float, count: int) -> list[float]:
    return [number * step_ms for number in range(count)]


def retried(*, later: bool, code: int = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> Journal:
    """Return a journal in which a batch fails and is retried, maybe after one with later records."""
    made = Journal()
    made.batch(0, 1, batch=batch(0), errors=[code])
    if later:
        made.batch(2, 3, batch=batch(2))
    made.batch(101, 102, batch=batch(0))
    return made


def given_up(
    *, until_ms: float, again: bool = False, errors: Iterable[int] = TIMED_OUT, hashes: bool = True
) -> Journal:
    """Return a journal in which two batches fail, and the producer sends others until `until_ms`."""
    made = Journal()
    for at_ms in (0, 10):
        made.batch(at_ms, at_ms + 1, batch=batch(at_ms), errors=errors, records=[f"{at_ms}"] * hashes)
    if again:
        for at_ms in (0, 10):
            made.batch(at_ms + 100, at_ms + 101, batch=batch(at_ms + 99), records=[f"{at_ms}"])
    for at_ms in range(1000, round(until_ms), 1000):
        made.batch(at_ms, at_ms + 1, batch=batch(at_ms), records=[f"{at_ms}"] * hashes)
    return made


def abandoned(waited_ms: float, timeout_ms: int, *, again: bool = True, until_ms: float = 9000) -> Journal:
    """Return a journal in which the client leaves two connections before the response, and goes on with another."""
    made = Journal()
    sent = {"acks": -1, "timeout_ms": timeout_ms}
    for at_ms in (0, 3000):
        left_ms = at_ms + waited_ms
        one = made.connection(at_ms, left_ms, answers=True, by_client=True)
        made.batch(at_ms + 1, ended_ms=left_ms, batch=batch(at_ms), sent=sent, connection=one, records=[f"{at_ms}"])
    made.connection(6000, answers=True)
    if again:
        for at_ms in (0, 3000):
            made.batch(6001 + at_ms / 1000, 6010, batch=batch(at_ms), sent=sent, records=[f"{at_ms}"])
    for at_ms in range(7000, round(until_ms), 500):
        made.batch(at_ms, at_ms + 1, batch=batch(at_ms), sent=sent, records=[f"{at_ms}"])
    return made


def late_response(waited_ms: float, *, is_merged: bool = False) -> Journal:
    """Return a journal in which the broker, which delays two responses, detects only then that the client has left.

    The retry is received, and its event recorded, before the delayed response is written.
    """
    made = Journal()
    for at_ms in (0, 3000):
        one = made.connection(at_ms, at_ms + 2001, answers=True, by_client=True)
        made.batch(at_ms + 1, at_ms + 2000, batch=batch(at_ms), sent=ALL, connection=one, records=[f"{at_ms}"])
        other, began_ms = made.connection(at_ms + waited_ms, answers=True), at_ms + waited_ms + 2
        again, hashes = (
            batch(at_ms, records=19 if is_merged else 10),
            [f"{at_ms}", "more"] if is_merged else [f"{at_ms}"],
        )
        made.batch(began_ms, began_ms + 1, batch=again, sent=ALL, connection=other, records=hashes)
    for at_ms in range(6000, 12_000, 500):
        made.batch(at_ms, at_ms + 1, batch=batch(at_ms), sent=ALL, records=[f"{at_ms}"])
    return made


def sent_again_while_waiting(*, same_content: bool = False) -> Journal:
    """Return a journal in which the retry waits on the same connection until the delayed response is written."""
    made = Journal()
    made.connection(-10, answers=True)
    for number, at_ms in enumerate((0, 1000, 4000, 5000)):
        content = ["x" if same_content else f"{number}"]
        lasting_ms = 2000 if number % 2 else 1
        made.batch(at_ms, at_ms + lasting_ms, batch=batch(at_ms), sent=ALL, records=content)
        if number % 2:
            made.batch(at_ms + 2001, at_ms + 2002, batch=batch(at_ms + 500), sent=ALL, records=content)
    return made


def producers(count: int, requests: int, step_ms: float = 100) -> Journal:
    made = Journal()
    for number in range(count):
        at_ms = number * step_ms
        made.request("InitProducerId", at_ms, at_ms + 1)
        for more in range(requests):
            made.batch(at_ms + 2 + more, at_ms + 2.5 + more, batch=batch(at_ms), sent=ALL)
    return made


def spread(sizes: dict[int, int], count: int = 40) -> Journal:
    """Return a journal with batches of these sizes by partition."""
    made = Journal()
    for number in range(count):
        for partition, nbytes in sizes.items():
            at_ms = number * 100 + partition
            made.batch(at_ms, at_ms + 0.5, partition=partition, batch=batch(at_ms, nbytes=nbytes), sent=ALL)
    return made


CASES = {
    "acks-zero": RuleCase(
        "5 of 5 Produce requests have acks=0",
        lambda: sends(every(10, 5), sent=NONE),
        lambda: sends(every(10, 5)),
        lambda: sends(every(10, 5), sent=NONE, fields=False),
    ),
    "acks-below-all": RuleCase(
        "5 of 5 Produce requests have acks=1",
        lambda: sends(every(10, 5), sent=LEADER),
        lambda: sends(every(10, 5)),
        lambda: sends(every(10, 5), sent=LEADER, fields=False),
    ),
    "reordering-possible": RuleCase(
        "4 of 5 Produce requests without a producer id were sent while another one",
        lambda: sends(every(1, 5), lasting_ms=1.5),
        lambda: sends(every(1, 5), lasting_ms=1.5, sequences=True),
        lambda: sends(every(1, 5), lasting_ms=0.5),
    ),
    "reordered-by-retry": RuleCase(
        "1 batches were appended after later records",
        lambda: retried(later=True),
        lambda: retried(later=False),
        lambda: sends(every(1, 5), errors=[ErrorCode.NOT_LEADER_OR_FOLLOWER]),
    ),
    "one-record-per-batch": RuleCase(
        "500 of 500 Produce requests have one record, 400 within 0.8 s",
        lambda: sends(every(2, 500), records=1, nbytes=80),
        lambda: sends(every(2, 500), records=5, nbytes=5000),
        lambda: sends(every(6, 500), records=1, nbytes=80),
    ),
    "small-batches": RuleCase(
        "500 of 500 Produce requests have batches of several records below 1 KiB",
        lambda: sends(every(2, 500), records=3, nbytes=200),
        lambda: sends(every(2, 500), records=3, nbytes=16000),
        lambda: sends(every(6, 500), records=3, nbytes=200),
    ),
    "no-compression": RuleCase(
        "16 of 16 MB are not compressed, in batches of 16,000 bytes",
        lambda: sends(every(10, 1000), nbytes=16000),
        lambda: sends(every(10, 1000), nbytes=16000, compression="lz4"),
        lambda: sends(every(10, 100), nbytes=16000),
    ),
    "producer-per-message": RuleCase(
        "20 InitProducerId requests for 20 Produce requests, 20 within 1.9 s",
        lambda: producers(20, 1),
        lambda: producers(20, 5),
        lambda: producers(19, 1),
    ),
    "records-too-large": RuleCase(
        "3 of 3 Produce requests were refused with MESSAGE_TOO_LARGE",
        lambda: sends(every(10, 3), errors=[ErrorCode.MESSAGE_TOO_LARGE]),
        lambda: sends(every(10, 3)),
        lambda: sends(every(10, 2), errors=[ErrorCode.MESSAGE_TOO_LARGE]),
    ),
    "clock-ahead": RuleCase(
        "the timestamps of 30 records in 3 batches are up to 60 s ahead",
        lambda: sends(every(10, 3), ahead_ms=60_000),
        lambda: sends(every(10, 3), ahead_ms=-3_600_000),
        lambda: sends(every(10, 3), ahead_ms=60_000, fields=False),
    ),
    "request-timeout-too-short": RuleCase(
        "2 Produce requests were given up, such as one after 999 ms although the broker was to wait 30,000 ms",
        lambda: abandoned(1000, 30_000),
        lambda: abandoned(1000, 1_000),
        lambda: sends(every(10, 5)),
    ),
    "delivery-timeout-too-short": RuleCase(
        "2 batches were sent once, had no response in time, and were not sent again",
        lambda: abandoned(1000, 30_000, again=False, until_ms=12_000),
        lambda: late_response(500),
        lambda: abandoned(1000, 30_000, again=False, until_ms=8_000),
    ),
    "retries-disabled": RuleCase(
        "2 batches failed with a retriable error (REQUEST_TIMED_OUT) and were not sent again",
        lambda: given_up(until_ms=9000),
        lambda: given_up(until_ms=9000, again=True),
        lambda: given_up(until_ms=9000, hashes=False),
    ),
    "hot-partition": RuleCase(
        "partition 1 has 87% of the 4.6 MB produced to 4 partitions",
        lambda: spread({0: 5000, 1: 100_000, 2: 5000, 3: 5000}),
        lambda: spread({0: 25_000, 1: 30_000, 2: 25_000, 3: 25_000}),
        lambda: spread({1: 100_000}, 100),
    ),
}


test_rule, test_all_rules_have_a_case = rule_tests(CASES, "producing", "batching")


def test_a_client_that_left_during_a_delayed_response_gave_the_request_up() -> None:
    (found,) = texts("request-timeout-too-short", late_response(500))
    assert "such as one after 499 ms" in found


def test_a_batch_that_was_sent_twice_had_a_second_attempt(journal: Journal) -> None:
    for at_ms in (0, 3000, 6000, 9000):
        one = journal.connection(at_ms, at_ms + 1000, answers=True, by_client=True)
        first_ms = at_ms // 6000 * 6000
        journal.batch(
            at_ms + 1, ended_ms=at_ms + 1000, batch=batch(first_ms), sent=ALL, connection=one, records=[f"{first_ms}"]
        )
    journal.connection(15_000, answers=True)
    journal.batch(16_000, 16_001, batch=batch(16_000), sent=ALL, records=["other"])
    assert texts("delivery-timeout-too-short", journal) == []


def test_a_retry_behind_a_delayed_response_shows_that_the_client_did_not_await_it() -> None:
    (found,) = texts("request-timeout-too-short", sent_again_while_waiting())
    assert found.startswith("2 Produce requests were given up, such as one after 2,000 ms")


def test_records_of_equal_content_are_no_retries() -> None:
    assert texts("request-timeout-too-short", sent_again_while_waiting(same_content=True)) == []


def test_batches_are_not_given_up_as_long_as_the_producer_may_retry() -> None:
    assert texts("retries-disabled", given_up(until_ms=4000)) == []
    assert texts("delivery-timeout-too-short", abandoned(1000, 30_000, again=False, until_ms=8_000)) == []


def test_without_hashes_the_rule_names_what_to_record() -> None:
    (undecided,) = lint(given_up(until_ms=9000, hashes=False).events).undecided
    assert (undecided.rule, undecided.record) == (
        "retries-disabled",
        "Set sluice.journal.record.hashes=true, or enable idempotence in the producer.",
    )


def test_a_retry_in_a_larger_batch_before_the_delayed_response_is_one() -> None:
    assert texts("delivery-timeout-too-short", late_response(500, is_merged=True)) == []


def test_an_error_that_is_not_retriable_needs_no_retry() -> None:
    assert texts("retries-disabled", given_up(until_ms=9000, errors=[ErrorCode.INVALID_RECORD])) == []


def test_records_that_fill_a_batch_are_sent_alone() -> None:
    assert texts("one-record-per-batch", sends(every(2, 500), records=1, nbytes=10_000)) == []


def test_records_in_another_batch_are_not_given_up() -> None:
    made = given_up(until_ms=9000)
    both = ProducedBatch(
        records=20, bytes=9000, compression="none", first_timestamp_ms=BEGAN_MS, max_timestamp_ms=BEGAN_MS + 10
    )
    made.batch(200, 201, batch=both, records=["0", "10"])
    assert texts("retries-disabled", made) == []


def test_requests_without_acks_cannot_be_reordered_by_retries(journal: Journal) -> None:
    for at_ms in every(1, 5):
        journal.batch(at_ms, ended_ms=at_ms + 1.5, batch=batch(at_ms), sent=NONE)
    assert texts("reordering-possible", journal) == []


def fleet(make: Callable[[Journal, float], None], count: int) -> Journal:
    """Return the journal of clients with the same id on different hosts."""
    made = Journal()
    for number in range(count):
        make(made.beside(client_id="app", host=f"10.0.1.{number}"), number)
    return made


def sends_seldom(client: Journal, from_ms: float) -> None:
    for at_ms in every(200, 20):
        client.batch(from_ms + at_ms, from_ms + at_ms + 0.5, batch=batch(at_ms, records=1, nbytes=80), sent=ALL)


def starts_once(client: Journal, from_ms: float) -> None:
    client.request("InitProducerId", from_ms, from_ms + 1)
    client.batch(from_ms + 2, from_ms + 3, batch=batch(from_ms), sent=ALL)


FLEETS = {
    "each sends 5 records/s": ("one-record-per-batch", sends_seldom),
    "each starts once": ("producer-per-message", starts_once),
}


@pytest.mark.parametrize(("rule", "make"), FLEETS.values(), ids=FLEETS)
def test_a_fleet_with_one_client_id_is_no_single_client(rule: str, make: Callable[[Journal, float], None]) -> None:
    assert texts(rule, fleet(make, 100)) == []


def test_other_producers_do_not_reorder_records(journal: Journal) -> None:
    journal.batch(0, 1, batch=batch(0), errors=TIMED_OUT)
    journal.beside(client_id="app").batch(2, 3, batch=batch(2))
    journal.batch(101, 102, batch=batch(0))
    assert texts("reordered-by-retry", journal) == []


def test_producers_that_are_killed_have_no_timeout(journal: Journal) -> None:
    for at_ms, killed_ms in ((0, 100), (3000, 3900)):
        one = journal.connection(at_ms, killed_ms, answers=True, by_client=True)
        journal.batch(at_ms + 1, ended_ms=killed_ms, batch=batch(at_ms), sent=ALL, connection=one, records=[f"{at_ms}"])
    journal.connection(6000, answers=True)
    for at_ms in range(6000, 12_000, 500):
        journal.batch(at_ms, at_ms + 1, batch=batch(at_ms), sent=ALL, records=[f"{at_ms}"])
    assert texts("request-timeout-too-short", journal) == []
    assert texts("delivery-timeout-too-short", journal) == []
