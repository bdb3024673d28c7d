"""The exit codes and errors of `python -m tests.client_against`."""

import pytest

from tests.client_against import main
from tests.support.ports import refusing_address


@pytest.mark.parametrize("arguments", [[], ["kafka"], ["kafka:"], [":9092"], ["kafka:port"]], ids=str)
def test_wrong_arguments_print_the_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == "usage: python -m tests.client_against HOST:PORT [PYTEST-OPTION...]\n"


def test_unreachable_broker_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with refusing_address() as place:
        assert main([place]) == 1
    assert capsys.readouterr().err.startswith(f"{place} cannot be reached: ")
