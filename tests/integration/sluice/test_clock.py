"""sluice.clock imports no asyncio."""

import subprocess
import sys


def test_clock_and_purgatory_do_not_import_asyncio() -> None:
    line = "import sys, sluice.clock, sluice.purgatory.purgatory; print('asyncio' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
