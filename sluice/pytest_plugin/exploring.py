"""Tests with `@pytest.mark.kafka_explore`: coroutines that run again and again in virtual time, with failures."""

import inspect
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from sluice.errors import SluiceError
from sluice.explore.evaluation import evaluating
from sluice.explore.exploration import settings, succeeded
from sluice.explore.output.regression import Explored
from sluice.explore.run import Run
from sluice.explore.target import RUN, check_test, mark_arguments


def run_explored(item: pytest.Function, mark: pytest.Mark) -> None:
    """Explore or replay a test. Raises the failure of pytest."""
    config = item.config
    try:
        given = mark_arguments(mark)
        function = inspect.unwrap(item.obj)  # in its auto mode, pytest-asyncio wraps it
        parameters = check_test(function, item.originalname)
        arguments = {name: item.funcargs[name] for name in parameters}
        runs = config.getoption("kafka_explore_runs")
        chosen = settings(**given if runs is None else {**given, "runs": runs})

        def program(run: Run) -> Coroutine[Any, Any, object]:
            return cast("Coroutine[Any, Any, object]", function(**{**arguments, RUN: run}))

        jobs = config.getoption("kafka_explore_jobs") if chosen.replayed is None else 1
        with evaluating(program, chosen.options, jobs) as evaluate:
            values = item.callspec.params if hasattr(item, "callspec") else {}
            fixtures = [name for name in parameters if name not in values]
            succeeded(program, chosen, Explored(item.originalname, fixtures, values), evaluate)
    except SluiceError as error:
        raise pytest.fail.Exception(
            f"kafka_explore: {str(error).removeprefix('kafka_explore: ')}", pytrace=False
        ) from None
