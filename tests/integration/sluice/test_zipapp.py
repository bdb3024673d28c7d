"""The zipapp runs with each Python of this machine that it supports."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sluice.protocol.apis.metadata import MetadataRequest
from tests.support import skips
from tests.support.wire import WireClient

TIMEOUT_S = 120  # of the first start, which unpacks the packages


@pytest.fixture
def command(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The command `sluice`, in an environment without any of its packages."""
    if (zipapp := request.config.getoption("zipapp")) is None:
        pytest.skip(skips.campaign("zipapp"))
    python = shutil.which(request.param)
    if python is None or subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip(skips.program(request.param, "install it"))
    return ["env", "-i", f"HOME={tmp_path}", f"PATH={os.defpath}", python, str(Path(zipapp).resolve())]


@pytest.mark.timeout(3 * TIMEOUT_S)
@pytest.mark.parametrize("command", [f"python3.{minor}" for minor in range(11, 15)], indirect=True)
def test_zipapp_starts_a_broker(command: list[str], tmp_path: Path) -> None:
    printed = subprocess.run([*command, "--version"], cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (printed.returncode, printed.stdout[:7]) == (0, "sluice "), printed.stderr
    serve = [*command, "serve", "--port", "0", "--admin-port", "0"]
    with subprocess.Popen(serve, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as broker:
        assert broker.stdout is not None
        bootstrap = json.loads(broker.stdout.readline().removeprefix(b"ready "))["bootstrap"]
        with WireClient(bootstrap) as client:
            (node,) = client.call(MetadataRequest(topics=[]), 9).brokers
        assert f"{node.host}:{node.port}" == bootstrap
        broker.terminate()
        assert broker.wait(TIMEOUT_S) == 0
