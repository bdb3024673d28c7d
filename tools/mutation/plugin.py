"""Pytest plugin of the mutation check: records which tests execute which lines, or limits memory and processor time."""

import os
import resource
import signal
from collections.abc import Iterator

import hypothesis
import pytest
from coverage import Coverage

from tools.mutation.mutants import PACKAGES

# A mutant that appends in an endless loop fails with a MemoryError. The unit tests need less than 1 GiB.
_MEMORY_BYTES = 4 * 2**30
# Unit tests take up to some seconds, and the collection up to a minute. SIGPROF, sent after this, ends the process.
_TEST_CPU_S, _COLLECTION_CPU_S = 40, 150
hypothesis.settings.register_profile(
    "mutants",
    deadline=None,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],  # shrinking a failure takes long
    suppress_health_check=list(hypothesis.HealthCheck),
)


class _Recorder:
    def __init__(self, data_file: str) -> None:
        self._coverage = Coverage(data_file=data_file, data_suffix=True, include=[f"{name}/*" for name in PACKAGES])
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        result = yield
        self._coverage.switch_context("")
        return result

    def pytest_unconfigure(self) -> None:
        self._coverage.stop()
        self._coverage.save()


class _Limits:
    def pytest_runtest_logstart(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, _TEST_CPU_S)


def pytest_configure(config: pytest.Config) -> None:
    data_file = os.environ.get("MUTATION_COVERAGE")
    if data_file is None:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
        signal.setitimer(signal.ITIMER_PROF, _COLLECTION_CPU_S)
        config.pluginmanager.register(_Limits())
    elif hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(data_file))
