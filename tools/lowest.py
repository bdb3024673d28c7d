"""Run the unit tests with the lowest versions of packages that pyproject.toml allows.

python -m tools.lowest [PYTEST ARGUMENT...]
"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
# Those that users install. PySpark's lowest version is tested by tests/spark, as it is that of its lock.
EXTRAS = ("audit", "demo", "fleet", "oauth", "plan", "tls")
# What the unit tests import besides, in the versions of the lock.
TEST_PACKAGES = (
    "hypothesis", "jsonschema", "lz4", "pandas", "pyte", "pytest", "pytest-asyncio", "pytest-timeout", "pytest-xdist",
    "python-snappy", "zstandard", "hatchling", "hatch-vcs", "editables",
)  # fmt: skip
# Compares with modules that kafka-python has since 3.0.
IGNORED = "tests/unit/protocol/test_kafka_python.py"
# Generated documents: newer versions of msgspec describe the same types in other words.
DESELECTED = (
    "tests/unit/sluice/cli/audit/test_command.py::test_schema_equals_the_published_one",
    "tests/unit/broker/admin/test_openapi.py::test_published_document_matches_the_served_one",
)


def main(arguments: list[str]) -> int:
    """Create the environment, run pytest in it, and return its exit code."""
    with TemporaryDirectory(prefix="kafka-sluice-") as folder:
        home = Path(folder)
        lowest = home / "lowest.txt"
        extras = [f"--extra={extra}" for extra in EXTRAS]
        _uv("pip", "compile", "--resolution=lowest-direct", *extras, "--no-annotate", "--no-header", "pyproject.toml",
            f"--output-file={lowest}")  # fmt: skip
        _uv("venv", f"--python={sys.executable}", str(home / "venv"))
        python = f"--python={home / 'venv/bin/python'}"
        chosen = {_name(line) for line in lowest.read_text().splitlines()}
        lock = (ROOT / "requirements/dev.lock").read_text().splitlines()
        constraints = home / "constraints.txt"
        constraints.write_text("\n".join(line for line in lock if _name(line) not in chosen))
        _uv("pip", "install", python, f"--requirement={lowest}", f"--constraint={constraints}", *TEST_PACKAGES)
        _uv("pip", "install", python, "--no-deps", "--no-build-isolation", "--editable", ".")
        print("lowest versions: " + " ".join(lowest.read_text().split()), flush=True)
        deselected = [f"--ignore={IGNORED}", *(f"--deselect={test}" for test in DESELECTED)]
        command: list[str | Path] = [
            home / "venv/bin/python",
            "-m",
            "pytest",
            "-q",
            *deselected,
            *(arguments or ["-n", "auto", "tests/unit"]),
        ]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


def _uv(*arguments: str) -> None:
    subprocess.run([Path(sys.executable).with_name("uv"), "--quiet", *arguments], cwd=ROOT, check=True)


def _name(requirement: str) -> str:
    return re.split(r"[=<>~! ;\[]", requirement.strip(), maxsplit=1)[0].lower().replace("_", "-")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
