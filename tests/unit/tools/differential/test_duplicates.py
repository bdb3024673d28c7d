"""Kafka's answers to repeated elements exist for every array of every request."""

from collections.abc import Iterator

from sluice.broker.exchange.advertised_versions import advertised_by
from sluice.protocol.apis import API_KEYS
from sluice.protocol.message import Message, fields_of
from tests.support.topic_requests import RELEASE
from tools.differential import answers

# They contain offsets and types instead of names; test_share_fetch.py covers them.
WITHOUT_NAMES = {
    (api, f"topics.partitions.acknowledgement_batches{field}")
    for api in ("ShareFetch", "ShareAcknowledge")
    for field in ("", ".acknowledge_types")
}


def arrays(message: type[Message], versions: tuple[int, int], path: str = "") -> Iterator[str]:
    """Yield the paths of the arrays of a request."""
    first, last = versions
    for field in fields_of(message):
        if field.versions.first <= last and field.versions.last >= first:
            if field.is_array:
                yield path + field.name
            if field.struct is not None:
                yield from arrays(field.struct, versions, f"{path}{field.name}.")


def test_each_array_of_each_request_has_answers_of_kafka() -> None:
    labels = [label.partition(": ") for rows in answers.read("duplicates").values() for label, _ in rows]
    compared = {(use.split()[0], row.split()[0]) for use, _, row in labels if row}
    served = {
        (API_KEYS[key].name, path)
        for key, versions in advertised_by(RELEASE).items()
        for path in arrays(API_KEYS[key].request, versions)
    }
    assert served - compared == WITHOUT_NAMES
    assert compared <= served
