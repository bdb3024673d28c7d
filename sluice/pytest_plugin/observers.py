"""The options that observe the brokers of each test, and their hooks."""

import os
from pathlib import Path

import pytest

from sluice.embedded.traces import started

from .traces import Traces

_MODES = ("retain-on-failure", "on", "off")


def add_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--kafka-trace",
        metavar="MODE",
        default="retain-on-failure",
        help="Write an HTML trace of each failed test (retain-on-failure), of each test (on), or none (off). A folder, "
        "such as ./traces: of failed tests, there. Default: retain-on-failure.",
    )
    group.addoption(
        "--kafka-trace-dir", metavar="DIR", help="Folder of the traces. Default: beside pytest's temporary folders."
    )
    group.addoption(
        "--kafka-lint",
        metavar="SEVERITY",
        help="Fail tests whose clients cause findings of `sluice lint`, of this severity or worse: error, warning or "
        "info.",
    )
    group.addoption(
        "--kafka-lint-baseline",
        metavar="FILE",
        help="Known findings, which do not fail tests: a file of `sluice lint --write-baseline`.",
    )


def observe_tests(config: pytest.Config) -> None:
    """Register the hooks that the options require. Raises UsageError."""
    mode, folder = _mode_and_folder(config)
    severity, baseline = config.getoption("kafka_lint"), config.getoption("kafka_lint_baseline")
    if baseline is not None and severity is None:
        raise pytest.UsageError("--kafka-lint-baseline: needs --kafka-lint")
    if mode == "off" and severity is None:
        return
    before, recorder = started.recorder, started.Recorder()
    started.recorder = recorder

    def restore() -> None:  # a test of a plugin runs pytest within pytest
        started.recorder = before

    config.add_cleanup(restore)
    plugins: dict[str, object] = {"recorder": _Beginnings(recorder)}
    if mode != "off":
        plugins["traces"] = Traces(recorder, folder, keeps_passed=mode == "on")
    if severity is not None:
        from .lint import Lint

        plugins["lint"] = Lint(recorder, severity, None if baseline is None else Path(baseline))
    for name, plugin in plugins.items():
        config.pluginmanager.register(plugin, f"sluice-{name}")


class _Beginnings:
    def __init__(self, recorder: started.Recorder) -> None:
        self._recorder = recorder

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self._recorder.begin_test()


def _mode_and_folder(config: pytest.Config) -> tuple[str, Path | None]:
    mode, folder = config.getoption("kafka_trace"), config.getoption("kafka_trace_dir")
    if mode not in _MODES:
        if os.sep not in mode or folder is not None:
            accepted = f"{', '.join(_MODES)} or a folder, such as ./traces"
            raise pytest.UsageError(f"--kafka-trace: expected {accepted}, got {mode}")
        mode, folder = "retain-on-failure", mode
    return mode, None if folder is None else config.invocation_params.dir / folder
