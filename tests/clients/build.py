"""Builds the clients in other languages: `python -m tests.clients.build`. What cannot be built says why.

Each goes into a folder of its own below .venv/clients, with a stamp of what it was built from: a second time costs
nothing.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.clients.external import BUILT, ROOT

HERE = Path(__file__).parent


class Build(NamedTuple):
    """How one client is built, from the files of a folder, with tools that must be there."""

    client: str
    sources: str
    tools: Sequence[str]
    variant: str  # which of those that are made from these files: a version, or a folder
    make: Callable[[Path, Path, str], None]  # source folder, target folder, variant


def call(*command: str | Path, cwd: Path) -> None:
    """Runs a tool; what it prints is for people."""
    subprocess.run(command, cwd=cwd, check=True, stdout=sys.stderr)


def jars(source: Path, target: Path, version: str) -> None:
    shutil.copy(source / "pom.xml", target)
    copy = ["dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime"]
    call("mvn", "-q", "-B", f"-Dkafka.version={version}", *copy, cwd=target)


def java(source: Path, target: Path, version: str) -> None:
    jars(source, target, version)
    call("javac", "-cp", "lib/*", "-d", "classes", *sorted(source.glob("*.java")), cwd=target)


def go(source: Path, target: Path, package: str) -> None:
    call("go", "build", "-o", target / "driver", f"./{package}", cwd=source)


def node(source: Path, target: Path, _: str) -> None:
    shutil.copytree(source, target, dirs_exist_ok=True)
    call("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=target)


def python(source: Path, target: Path, _: str) -> None:
    call(sys.executable, "-m", "venv", "venv", cwd=target)
    pip = ("venv/bin/python", "-m", "pip", "--disable-pip-version-check", "-q")
    call(*pip, "install", "-r", source / "requirements.txt", cwd=target)
    (site_packages,) = (target / "venv" / "lib").glob("python*/site-packages")
    (site_packages / "tests.pth").write_text(str(ROOT))  # so that it finds the drivers


BUILDS = (
    Build("kafka-python-2", "kafka_python_2", (), "", python),
    Build("java-3.9", "java", ("java", "javac", "mvn"), "3.9.2", java),
    Build("java-4", "java", ("java", "javac", "mvn"), "4.4.0", java),
    Build("kafka-tools", "kafka_tools", ("java", "mvn"), "4.3.1", jars),  # the newest there is on Maven Central
    Build("franz-go", "go", ("go",), "franz", go),
    Build("sarama", "go", ("go",), "sarama", go),
    Build("kafkajs", "node", ("node", "npm"), "", node),
)


def stamp_of(build: Build) -> str:
    """Changes with everything that the build is made from."""
    digest = hashlib.sha256(build.variant.encode())
    for file in sorted((HERE / build.sources).rglob("*.*")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def build_one(build: Build) -> str:
    """What became of it, in a line."""
    target = BUILT / build.client
    if (target / "built").exists() and (target / "built").read_text() == stamp_of(build):
        return "built already"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    reason = None
    if lacking := [tool for tool in build.tools if shutil.which(tool) is None]:
        reason = f"there is no {' and no '.join(lacking)} here"
    else:
        try:
            build.make(HERE / build.sources, target, build.variant)
        except subprocess.CalledProcessError as failure:
            reason = f"it could not be built: {failure.cmd[0]} ended with {failure.returncode}"
    if reason is not None:
        (target / "reason").write_text(reason)
        return f"skipped: {reason}"
    (target / "built").write_text(stamp_of(build))
    return "built"


if __name__ == "__main__":
    for one in BUILDS:
        print(f"{one.client}: {build_one(one)}", flush=True)
