"""Skip pages whose commands need the extra `spark` if it is not installed."""

from importlib.util import find_spec

import pytest

_NEED_NUMPY = ("docs/plan.md",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if find_spec("numpy") is None:
        for item in items:
            if any(page in item.name for page in _NEED_NUMPY):
                item.add_marker(pytest.mark.skip(reason="the extra `spark` is not installed"))
