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


def observe_tests(config: pytest.Config) -> None:
    """Register the hooks that the options require."""
    mode, folder = _mode_and_folder(config)
    if mode == "off":
        return
    before, recorder = started.recorder, started.Recorder()
    started.recorder = recorder

    def restore() -> None:  # a test of a plugin runs pytest within pytest
        started.recorder = before

    config.add_cleanup(restore)
    config.pluginmanager.register(Traces(recorder, folder, keeps_passed=mode == "on"), "sluice-traces")


def _mode_and_folder(config: pytest.Config) -> tuple[str, Path | None]:
    mode, folder = config.getoption("kafka_trace"), config.getoption("kafka_trace_dir")
    if mode not in _MODES:
        if os.sep not in mode or folder is not None:
            raise pytest.UsageError(
                f"--kafka-trace: expected {', '.join(_MODES)} or a folder, such as ./traces, got {mode}"
            )
        mode, folder = "retain-on-failure", mode
    return mode, None if folder is None else config.invocation_params.dir / folder
