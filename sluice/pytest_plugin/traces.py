"""Traces of failed tests: `--kafka-trace`.

The trace is written when the test fails, so that the report can name the file, and again after the teardown.
"""

import logging
from collections import deque
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from sluice.embedded.traces import started
from sluice.embedded.traces.of_broker import write_in_folder
from sluice.embedded.traces.recorded_test import RecordedFailure, RecordedPhase, RecordedTest, failure_of
from sluice.errors import SluiceError

_FOLDER = "sluice-traces"
_SECTION = "sluice trace"
_MOST_LOG_LINES = 2000  # the last ones; more would not be read, and make the file large


class _Test(RecordedTest):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.events: Sequence[started.Recorded] = ()
        self.problem = ""


class _Log(logging.Handler):
    """The log records of a test that pass the levels of their loggers, as caplog has them."""

    def __init__(self) -> None:
        super().__init__()
        self.records: deque[logging.LogRecord] = deque(maxlen=_MOST_LOG_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


class Traces:
    def __init__(self, recorder: started.Recorder, folder: Path | None, *, keeps_passed: bool) -> None:
        self._recorder = recorder
        self._folder = folder
        self._keeps_passed = keeps_passed
        self._log = _Log()
        self._test = _Test("")  # the current one

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        root = logging.getLogger()
        root.addHandler(self._log)
        try:
            return (yield)
        finally:
            root.removeHandler(self._log)

    @pytest.hookimpl(wrapper=True)  # after the teardown of fixtures, before the broker of the session is reset
    def pytest_runtest_teardown(self) -> Generator[None]:
        has_ended = False
        try:
            result = yield
            has_ended = True
            return result
        finally:
            if self._test.failure or self._keeps_passed or not has_ended:
                self._read_events(self._test)

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # after the other sections of the report
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "setup":
            self._test = _Test(item.nodeid)
        test = self._test
        if call.start:  # a subtest of unittest has no times
            test.phases.append(RecordedPhase(call.when, call.start, call.stop, report.outcome))
        if report.failed:
            test.failure = test.failure or _failure(item, call, report)
            if call.when != "teardown":
                self._read_events(test)
        if report.failed or (call.when == "teardown" and (test.failure or self._is_kept(test))):
            written = self._write(item.config, test)
            if report.failed and written:
                report.sections.append((_SECTION, written))
        if call.when == "teardown":
            self._log.records.clear()
            self._test = _Test("")  # forget its events
        return report

    def _is_kept(self, test: _Test) -> bool:
        return self._keeps_passed and all(phase.result == "passed" for phase in test.phases)

    def _read_events(self, test: _Test) -> None:
        try:
            test.events = self._recorder.recorded()
        except SluiceError as error:  # its loop is blocked
            test.problem = f"no trace: {error}"

    def _write(self, config: pytest.Config, test: _Test) -> str:
        if not test.events:
            return test.problem
        test.log_records = [*self._log.records]
        try:
            folder = self._folder or config._tmp_path_factory.getbasetemp() / _FOLDER  # type: ignore[attr-defined]
        except Exception as error:  # without the plugin tmpdir, or without a place for its folders
            return f"no folder for the trace: {error!r}; set --kafka-trace-dir"
        return write_in_folder(folder, test, test.events, has_passed=test.failure is None)


def _failure(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> RecordedFailure:
    at_s = call.stop or None
    if call.excinfo is None:  # such as a test that is expected to fail, and passes
        return RecordedFailure(str(report.longrepr), str(item.path), -1, at_s)
    return failure_of(call.excinfo.value, str(item.path), at_s)
