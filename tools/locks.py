"""The installation of a lock file of requirements/ into the environment of this process."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# PySpark (500 MB) requires Java. SPARK=no leaves it out.
HAS_SPARK = os.environ.get("SPARK") != "no" and bool(os.environ.get("JAVA_HOME") or shutil.which("java"))


def install(lock: str) -> None:
    """Install requirements/LOCK.lock; if its packages are installed, this takes less than a second.

    Raises:
        CalledProcessError: a package was not installed.
    """
    if lock != "spark" or HAS_SPARK:
        command = [".ci/install", str(Path(sys.executable).parent), "-r", f"requirements/{lock}.lock"]
        subprocess.run(command, cwd=ROOT, check=True)
