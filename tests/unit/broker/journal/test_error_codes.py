"""The error codes of an answer that is encoded already."""

import pytest

from sluice.broker.dispatch.dispatcher import Route
from sluice.broker.dispatch.registry import HANDLERS
from sluice.broker.journal.error_codes import error_codes
from sluice.protocol.apis.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from sluice.protocol.codec.compile import encoder

VERSION = 9


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        pytest.param([3, 0, 3, 6], (3, 6), id="each once, in their order"),
        pytest.param([0], (99,), id="none that can be found, and so what is known"),
    ],
)
def test_codes_are_found_in_the_answer(codes: list[int], expected: tuple[int, ...]) -> None:
    route = Route(HANDLERS[0], VERSION, lambda *_: None)
    answers = [PartitionProduceResponse(index=index, error_code=code) for index, code in enumerate(codes)]
    body: list[bytes | memoryview] = []
    response = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=answers)])
    encoder(ProduceResponse, VERSION)(response, body)
    assert error_codes(route, body, sum(map(len, body)) + 5, 99) == expected


def test_an_answer_with_many_records_is_not_read_again() -> None:
    route = Route(HANDLERS[1], 4, lambda *_: None)
    assert error_codes(route, [b"never looked at"], 1 << 20, 1) == (1,)
