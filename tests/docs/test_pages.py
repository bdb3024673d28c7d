"""Every console command of the documentation prints the shown output, and every Python block runs."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from sluice import SyncBroker
from tests.support import skips
from tests.support.console import COMMAND_TIMEOUT_S, run_page
from tests.support.python_blocks import blocks, run_blocks

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])
# Each command of this page starts Spark.
SPARK_PAGE = ROOT / "docs" / "spark.md"
# Simulates thousands of clients. tests/integration/sluice/cli/fleet runs the commands with few.
FLEETS_PAGE = ROOT / "docs" / "fleets.md"
OTHER_PAGES = [page for page in PAGES if page not in (FLEETS_PAGE, SPARK_PAGE)]


@pytest.mark.parametrize("page", OTHER_PAGES, ids=[str(page.relative_to(ROOT)) for page in OTHER_PAGES])
def test_commands_print_the_shown_output(page: Path, tmp_path: Path) -> None:
    _run(page, tmp_path, COMMAND_TIMEOUT_S)


@pytest.mark.spark_long
@pytest.mark.timeout(900)
@pytest.mark.skipif(find_spec("pyspark") is None, reason=skips.campaign("spark"))
def test_commands_of_the_spark_page_print_the_shown_output(tmp_path: Path) -> None:
    _run(SPARK_PAGE, tmp_path, 240)


@pytest.mark.many_clients
def test_commands_of_the_fleets_page_print_the_shown_output(tmp_path: Path) -> None:
    _run(FLEETS_PAGE, tmp_path, COMMAND_TIMEOUT_S)


def _run(page: Path, folder: Path, timeout_s: float) -> None:
    (folder / "examples").symlink_to(ROOT / "examples")
    run_page(page.read_text(), folder, timeout_s)


WITH_PYTHON = [page for page in PAGES if blocks(page.read_text())]
# Broker address in the pages.
STARTED = "127.0.0.1:9092"


@pytest.mark.parametrize("page", WITH_PYTHON, ids=[str(page.relative_to(ROOT)) for page in WITH_PYTHON])
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    with SyncBroker(config={"group.initial.rebalance.delay.ms": 0}) as broker:
        run_blocks(page.read_text().replace(STARTED, broker.bootstrap), tmp_path)
