"""Findings of lint that fail the test that caused them: `--kafka-lint`. Loaded only with this option."""

from collections.abc import Collection, Generator, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from sluice.client.network.network_client import SOFTWARE_NAME
from sluice.embedded.traces.started import Recorder
from sluice.errors import SluiceError
from sluice.lint.baseline import read_baseline
from sluice.lint.findings import Finding, Identity
from sluice.lint.registry import all_rules
from sluice.lint.report.text import finding_lines
from sluice.lint.rule import Severity
from sluice.lint.run import lint
from sluice.text.error_text import one_of


class Lint:
    """The hook. A test that fails by itself is not judged, and the end of the call is the end of the events."""

    def __init__(self, recorder: Recorder, severity: str, baseline: Path | None) -> None:
        """Raise UsageError for an unknown severity, or a file that is no baseline."""
        if severity not in list(Severity):
            raise pytest.UsageError(f"--kafka-lint: {one_of(Severity, severity)}")
        self._recorder = recorder
        self._severity = Severity(severity)
        try:
            self._known: Collection[Identity] = () if baseline is None else read_baseline(baseline)
        except SluiceError as error:
            raise pytest.UsageError(f"--kafka-lint-baseline: {error}") from None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None]:
        yield
        found = [*self._findings()]
        if found:
            pytest.fail("\n".join(self._report(found)), pytrace=False)

    def _findings(self) -> Iterator[Finding]:
        wanted = self._severity.and_worse
        for recorded in self._recorder.recorded():
            for finding in lint(recorded.events).findings:
                is_of_tests = all(client.software_name == SOFTWARE_NAME for client in finding.clients)
                if finding.severity in wanted and finding.identity not in self._known and not is_of_tests:
                    yield finding

    def _report(self, found: Sequence[Finding]) -> Iterator[str]:
        number = "1 finding" if len(found) == 1 else f"{len(found)} findings"
        severity = str(self._severity) + ("" if self._severity is Severity.ERROR else " or worse")
        yield f"sluice lint: {number} of severity {severity}"
        for finding in found:
            yield from finding_lines(finding, all_rules()[finding.rule])
            yield f"  in a baseline: {msgspec.json.encode(finding.identity._asdict()).decode()}"
