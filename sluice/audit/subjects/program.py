"""A client in another language: a driver program that is built once, from the sources beside this file.

The build is kept in the cache folder until the sources change.
"""

import asyncio
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from sluice.errors import SubjectError
from sluice.spark.cache import cache_folder

from .client import Client
from .driven import DrivenSubject, start_driver
from .subject import Job, OnCallback, Running

_SOURCES = Path(__file__).parent / "programs"
_BUILT_WITHIN_S = 600
_IGNORED = shutil.ignore_patterns("node_modules")


class Language(NamedTuple):
    """How programs of a language are built and run.

    tools: programs that must be on the path
    build: command that runs in a copy of the sources; {package} is the driver's folder
    run: command; {built} is the copy
    """

    tools: tuple[str, ...]
    install: str
    build: tuple[str, ...]
    run: tuple[str, ...]


_LANGUAGES = {
    "go": Language(
        tools=("go",),
        install="install Go 1.26 (https://go.dev/dl)",
        build=("go", "build", "-o", "program", "./{package}"),
        run=("{built}/program",),
    ),
    "node": Language(
        tools=("node", "npm"),
        install="install Node.js 20 (https://nodejs.org)",
        build=("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"),
        run=("node", "{built}/main.js"),
    ),
}


class ProgramSubject(DrivenSubject):
    def __init__(self, client: Client) -> None:
        super().__init__(client)
        folder, _, self._package = client.driver.partition("/")
        self._language = _LANGUAGES[folder]
        self._sources = _SOURCES / folder

    def version(self) -> str:
        return _version(self._sources, self.client.distribution)

    def missing(self) -> str | None:
        lacking = " and ".join(tool for tool in self._language.tools if shutil.which(tool) is None)
        return f"{self.name}: {lacking} not found to build its driver; {self._language.install}" if lacking else None

    async def prepare(self) -> None:
        await asyncio.to_thread(self.build)

    def command(self) -> list[str]:
        return [word.format(built=self._built()) for word in self._language.run]

    def build(self) -> None:
        """Build the driver unless it is built. Raises SubjectError."""
        built = self._built()
        if built.exists():
            return
        try:
            built.parent.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=built.parent) as work:
                copy = Path(work) / built.name
                shutil.copytree(self._sources, copy, ignore=_IGNORED)
                self._build_in(copy)
                copy.rename(built)
        except OSError as error:
            raise SubjectError(f"{self.name}: cannot build its driver in {built.parent}: {error}") from None

    def _build_in(self, folder: Path) -> None:
        command = [word.format(package=self._package) for word in self._language.build]
        environment = {**os.environ, "GOFLAGS": "-buildvcs=false"}
        try:
            done = subprocess.run(  # noqa: S603  (ours)
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_BUILT_WITHIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SubjectError(f"{self.name}: {command[0]} did not build its driver in {_BUILT_WITHIN_S} s") from None
        if done.returncode != 0:
            lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            why = lines[-1] if lines else f"exit code {done.returncode}"
            raise SubjectError(f"{self.name}: {' '.join(command)} failed: {why}. It needs access to its registry once")

    def _built(self) -> Path:
        return cache_folder() / "audit" / f"{self.name}-{_digest(self._sources, self._language.build)[:16]}"

    async def start(self, job: Job, on_callback: OnCallback) -> Running:
        return await start_driver(self.client, job, on_callback, self.command())


@cache
def _digest(sources: Path, command: Sequence[str]) -> str:
    digest = hashlib.sha256(" ".join(command).encode())
    for file in sorted(sources.rglob("*.*")):
        if "node_modules" not in file.parts and file.is_file():
            digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _version(sources: Path, library: str) -> str:
    if (package := sources / "package.json").exists():
        return str(json.loads(package.read_text())["dependencies"][library])
    found = re.search(rf"^\s*{re.escape(library)} v(\S+)", (sources / "go.mod").read_text(), re.MULTILINE)
    assert found is not None, library
    return found[1]
