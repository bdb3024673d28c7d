"""Install kafka-sluice by name from a folder of wheels, in every way that the documentation names.

python -m tools.install [STEP...]      (all by default; the packages that it depends on come from PyPI)

Each step gets an environment of its own, without a compiler on its path. It prints what it did and how long that took.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
WORK = Path(mkdtemp(prefix="kafka-sluice-"))  # outside the checkout, whose settings pytest would read
INDEX = WORK / "index"
# The release before; until there is one, the commit before the restructuring of the request path.
BEFORE = "206232a7"
BEFORE_VERSION = "0.1.0.dev1"
FIRST_TEST_S = 20.0
# Compressed sizes: an image is at most this; the base image is python:3.13-slim-trixie for amd64 and arm64.
IMAGE_MB, BASE_MB = 90, 46
# Extra -> what uses it, in Python or as a command.
USES_OF_EXTRAS: dict[str, tuple[str, ...]] = {
    "audit": ("sluice", "audit", "run", "--virtual", "--subject", "sluice", "--probe", "KIP-580/1", "--out", "report"),
    "demo": ("sluice", "demo", "--seconds", "25"),
    "fleet": ("sluice", "fleet", "run", "rolling-restart", "--fleet", "java:100", "--seeds", "1", "--out", "fleet"),
    "oauth": ("python", "-c", "import cryptography, jwt"),
    "plan": ("sluice", "pipeline", "plan", "--help"),
    "tls": ("python", "-c", "from sluice import SyncBroker\nwith SyncBroker(tls=True): pass"),
}
RATES_MISSED = 1  # by the demo, on a busy machine
WRITE = """
import sys
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1], "enable.idempotence": True})
for number in range(100):
    producer.produce("orders", str(number).encode())
sys.exit(producer.flush(20))
"""
READ = """
import sys
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "readers", "enable.auto.commit": False})
consumer.assign([TopicPartition("orders", 0, 0)])
records = [record.value() for record in consumer.consume(100, timeout=20)]
consumer.close()
sys.exit(records != [str(number).encode() for number in range(100)])
"""


class FailedError(Exception):
    """A step that did not do what it should; the text says what happened."""


class Environment(NamedTuple):
    """A virtual environment, and the folder in which its commands run."""

    home: Path

    def install(self, *requirements: str, upgrade: bool = False) -> None:
        """Install packages as a user would, from wheels only."""
        options = ["--find-links", str(INDEX), "--only-binary", ":all:", *(["--upgrade"] if upgrade else [])]
        self.run("python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *options, *requirements)

    def run(self, *command: str) -> str:
        """Run a command of the environment, and return its output.

        Raises:
            FailedError: Its exit code is not 0.
        """
        done = self.try_run(*command)
        if done.returncode:
            raise FailedError(f"{' '.join(command)[:200]}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def try_run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment, whatever its exit code is."""
        return subprocess.run(
            [self.home / "bin" / command[0], *command[1:]],
            cwd=self.home,
            env={"HOME": str(self.home), "PATH": f"{self.home / 'bin'}:{WORK / 'path'}"},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    @contextmanager
    def broker(self, data: Path) -> Iterator[str]:
        """Run a broker on a data directory, and yield its address."""
        command: list[str | Path] = [
            self.home / "bin/sluice",
            "serve",
            "--port",
            "0",
            "--admin-port",
            "0",
            "--data-dir",
            data,
        ]
        with subprocess.Popen(command, cwd=self.home, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            ready = process.stdout.readline()
            if not ready.startswith(b"ready "):
                raise FailedError(f"the broker did not start: {process.stderr.read().decode()}")
            try:
                yield json.loads(ready.removeprefix(b"ready "))["bootstrap"]
            finally:
                process.terminate()


def new_environment(name: str) -> Environment:
    home = WORK / name
    subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
    return Environment(home)


@cache
def version() -> str:
    """Build both wheels into the index, and return the version of the checkout's."""
    (WORK / "path").mkdir()
    for tool in ("env", "sh", "uname"):  # what the launchers of an environment use; above all, no compiler
        (WORK / "path" / tool).symlink_to(str(shutil.which(tool)))
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(INDEX)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = INDEX.glob("*.whl")
    before = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, check=False, capture_output=True)
    if before.returncode == 0:
        with tarfile.open(fileobj=BytesIO(before.stdout)) as archive:
            archive.extractall(WORK / "before", filter="tar")
        pretended = os.environ | {"SETUPTOOLS_SCM_PRETEND_VERSION": BEFORE_VERSION}
        subprocess.run(build, cwd=WORK / "before", env=pretended, check=True, capture_output=True)
    return wheel.name.split("-")[1]


def first_test() -> str:
    """The README's first test, from an empty environment."""
    wanted = version()
    environment = new_environment("first-test")
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    test = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert test is not None
    (environment.home / "test_orders.py").write_text(test[1], encoding="utf-8")
    start = monotonic()
    environment.install(f"kafka-sluice=={wanted}", "pytest", "confluent-kafka")
    environment.run("pytest", "test_orders.py")
    seconds = monotonic() - start
    if seconds > FIRST_TEST_S:
        raise FailedError(f"took {seconds:.1f} s of {FIRST_TEST_S:.0f}")
    for command in (("sluice",), ("python", "-m", "sluice")):
        if environment.run(*command, "--version") != f"sluice {wanted}\n":
            raise FailedError(f"{' '.join(command)} has another version than the wheel")
    return f"{seconds:.1f} s from `pip install` to a passing test"


def isolated_command() -> str:
    """The command alone, as by pipx or uvx."""
    tool = ["tool", "run", "--find-links", str(INDEX), "--from", f"kafka-sluice=={version()}", "sluice", "--version"]
    uv = Path(sys.executable).with_name("uv")
    printed = subprocess.run([uv, *tool], capture_output=True, text=True, check=False)
    if printed.stdout != f"sluice {version()}\n":
        raise FailedError(printed.stdout + printed.stderr)
    return "`uvx --from kafka-sluice sluice --version`"


def extras() -> str:
    """Each extra: what uses it fails in one line before, and works after its installation."""
    version()
    for extra, use in USES_OF_EXTRAS.items():
        environment = new_environment(f"extra-{extra}")
        environment.install("kafka-sluice", "--pre")
        before = environment.try_run(*use)
        if use[0] == "sluice" and "--help" not in use:
            line = before.stderr.strip().splitlines()[-1:] or [""]
            if not before.returncode or f"kafka-sluice[{extra}]" not in line[0] or "Traceback" in before.stderr:
                raise FailedError(f"{extra}: without it, {' '.join(use)} printed {before.stdout}{before.stderr}")
        environment.install(f"kafka-sluice[{extra}]", "--pre")
        after = environment.try_run(*use)
        if after.returncode not in (0, *([RATES_MISSED] if extra == "demo" else [])) or "Traceback" in after.stderr:
            raise FailedError(f"{extra}: {' '.join(use)} printed {after.stdout}{after.stderr}")
    return ", ".join(USES_OF_EXTRAS)


def other_versions() -> str:
    """A data directory of the version before after an upgrade, and a newer one after a downgrade."""
    wanted = version()
    environment = new_environment("upgrade")
    data = environment.home / "data"
    for installed, program in ((BEFORE_VERSION, WRITE), (wanted, READ), (BEFORE_VERSION, READ)):
        environment.install(f"kafka-sluice=={installed}", "confluent-kafka")
        with environment.broker(data) as bootstrap:
            environment.run("python", "-c", program, bootstrap)
    return f"{BEFORE_VERSION} writes, {wanted} reads, {BEFORE_VERSION} reads"


def image() -> str:
    """The steps of the Dockerfile, executed in a folder instead of a container."""
    version()
    folder = WORK / "image"
    context = folder / "src"
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for name in tracked.stdout.splitlines():
        if any(name == each or name.startswith(f"{each}/") for each in allowed):
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, context / name, follow_symlinks=False)
    build = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text().replace("\\\n", " "), flags=re.MULTILINE)[1]
    steps = re.findall(r"^RUN (.*)$", build, re.MULTILINE)
    if not steps:
        raise FailedError("the Dockerfile has no steps")
    environment = os.environ | {"SETUPTOOLS_SCM_PRETEND_VERSION": version()}
    tools = new_environment("image-tools")
    environment["PATH"] = f"{tools.home / 'bin'}:{environment['PATH']}"
    for step in steps:
        here = re.sub(r"(?<![\w.])/(opt|wheel)\b", rf"{folder}/\1", step)
        done = subprocess.run(["sh", "-ec", here], cwd=context, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise FailedError(f"{step}: {done.stdout}{done.stderr}")
    with tarfile.open(folder / "layer.tar.gz", "w:gz") as archive:
        archive.add(folder / "opt", "opt")
    size = (folder / "layer.tar.gz").stat().st_size / 1e6
    if size + BASE_MB > IMAGE_MB:
        raise FailedError(f"{size:.1f} MB beside {BASE_MB} MB of the base image, of {IMAGE_MB}")
    printed = subprocess.run([folder / "opt/sluice/bin/sluice", "--version"], capture_output=True, text=True).stdout
    if printed != f"sluice {version()}\n":
        raise FailedError(f"the image has {printed!r}")
    return f"{size:.1f} MB beside {BASE_MB} MB of the base image"


STEPS: dict[str, Callable[[], str]] = {
    "first-test": first_test,
    "isolated-command": isolated_command,
    "extras": extras,
    "other-versions": other_versions,
    "image": image,
}


def main(names: list[str]) -> int:
    """Run steps; return the number of failed ones."""
    if unknown := sorted(set(names) - STEPS.keys()):
        print(f"step: expected some of {', '.join(STEPS)}, got {' '.join(unknown)}", file=sys.stderr)
        return 2
    failed = 0
    try:
        for name in names or STEPS:
            start = monotonic()
            try:
                result = f"ok      {name}: {STEPS[name]()}"
            except FailedError as error:
                failed += 1
                result = f"FAILED  {name}: {error}"
            print(f"{result} ({monotonic() - start:.0f} s)", flush=True)
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
