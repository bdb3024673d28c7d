"""Build the clients in other languages, or those named, or report why not: `python -m tools.clients.build [NAME...]`.

Each goes into its own folder below .venv/clients, with a stamp of its sources: a second build costs nothing.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.clients.built import BUILT, ROOT, SOURCES, missing, stamp_of


class Build(NamedTuple):
    """A client's build function and the tools it needs."""

    client: str
    tools: Sequence[str]
    make: Callable[[Path, Path, str], None]  # source folder, target folder, variant


def call(*command: str | Path, cwd: Path) -> None:
    """Run a tool without capturing its output."""
    subprocess.run(command, cwd=cwd, check=True, stdout=sys.stderr)


def jars(source: Path, target: Path, version: str) -> None:
    shutil.copy(source / "pom.xml", target)
    copy = ["dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime"]
    call("mvn", "-q", "-B", f"-Dkafka.version={version}", *copy, cwd=target)


def java(source: Path, target: Path, version: str) -> None:
    jars(source, target, version)
    files = sorted(source.glob("*.java"))
    if not version.startswith("3."):  # which has no share consumers
        files += sorted((source / "share").glob("*.java"))
    call("javac", "-cp", "lib/*", "-d", "classes", *files, cwd=target)


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
    (site_packages / "tests.pth").write_text(str(ROOT))  # makes the drivers importable


def apicurio(source: Path, target: Path, version: str) -> None:
    java(source, target, version)
    artifact = f"io.apicurio:apicurio-registry-app:{version}:tar.gz:all"
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy"
    call("mvn", "-q", "-B", copy, f"-Dartifact={artifact}", "-DoutputDirectory=registry", cwd=target)
    call("tar", "-xzf", f"apicurio-registry-app-{version}-all.tar.gz", cwd=target / "registry")


BUILDS = (
    Build("kafka-python-2", (), python),
    Build("java-3.9", ("java", "javac", "mvn"), java),
    Build("java-4", ("java", "javac", "mvn"), java),
    Build("kafka-tools", ("java", "mvn"), jars),
    Build("kafka-broker", ("java", "mvn"), jars),
    Build("kafka-streams", ("java", "javac", "mvn"), java),
    Build("kafka-connect", ("java", "mvn"), jars),
    Build("flink", ("java", "javac", "mvn"), java),
    Build("apicurio", ("java", "javac", "mvn", "tar"), apicurio),
    Build("python-tools", (), python),
    Build("franz-go", ("go",), go),
    Build("sarama", ("go",), go),
    Build("kafkajs", ("node", "npm"), node),
)

TOOLS = ("kafka-broker", "kafka-connect", "flink", "apicurio", "python-tools")  # built only by name: 600 MB
CLIENTS = [build.client for build in BUILDS if build.client not in TOOLS]


def build_one(build: Build) -> str:
    """Build one client and return the outcome in one line."""
    target = BUILT / build.client
    sources = SOURCES[build.client]
    if missing(build.client) is None:
        return "built already"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    reason = None
    if lacking := [tool for tool in build.tools if shutil.which(tool) is None]:
        reason = f"not installed: {' and '.join(lacking)}; install it"
    else:
        try:
            build.make(sources.path, target, sources.variant)
        except subprocess.CalledProcessError as failure:
            reason = f"the build failed: {failure.cmd[0]} ended with {failure.returncode}; run it again"
    if reason is not None:
        (target / "reason").write_text(reason)
        return f"skipped: {reason}"
    (target / "built").write_text(stamp_of(sources))
    return "built"


if __name__ == "__main__":
    for one in [build for build in BUILDS if build.client in (sys.argv[1:] or CLIENTS)]:
        print(f"{one.client}: {build_one(one)}", flush=True)
