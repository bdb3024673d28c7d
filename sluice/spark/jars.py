"""The connector's jars as files: from a given folder, the cache, or Maven Central (once).

The Ivy inside PySpark downloads them; `SLUICE_IVY_SETTINGS` names an Ivy settings file. A downloaded file is rejected
unless it has the digest in connector.py.
"""

import os
import subprocess
from collections.abc import Sequence
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import quoteattr

from sluice.errors import SluiceError

from .cache import cache_folder
from .connector import Jar, connector_for
from .java import Java

_CONNECTOR = "spark-sql-kafka-0-10"
_BESIDE = ("spark-token-provider-kafka-0-10", "kafka-clients", "commons-pool2")
_FETCH_S = 300
IVY_SETTINGS = "SLUICE_IVY_SETTINGS"


def given_jars(folder: Path, pyspark_version: str) -> list[Path]:
    """Return the jars of a folder; raise SluiceError if a jar of the connector is missing or of another version."""
    if not folder.is_dir():
        raise SluiceError(f"{folder}: not a folder")
    jars = sorted(folder.glob("*.jar"))
    missing = [name for name in (_CONNECTOR, *_BESIDE) if not any(jar.name.startswith(name) for jar in jars)]
    if missing:
        raise SluiceError(f"{folder}: missing jars of Spark's Kafka connector: {', '.join(missing)}")
    wrong = [jar.name for jar in jars if jar.name.startswith(_CONNECTOR) and f"-{pyspark_version}" not in jar.name]
    if wrong:
        raise SluiceError(f"{folder}: expected the Kafka connector of PySpark {pyspark_version}, got {wrong[0]}")
    return jars


def fetched_jars(pyspark_version: str, java: Java) -> list[Path]:
    return cached_jars(connector_for(pyspark_version), java)


def cached_jars(wanted: Sequence[Jar], java: Java) -> list[Path]:
    folder = cache_folder() / "jars"
    missing = [jar for jar in wanted if not _is_whole(folder / jar.file_name, jar)]
    if missing:
        _fetch(missing, folder, java)
    return [folder / jar.file_name for jar in wanted]


def _is_whole(path: Path, jar: Jar) -> bool:
    return path.exists() and _sha256(path) == jar.sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _fetch(jars: Sequence[Jar], folder: Path, java: Java) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as work:
            _run_ivy(jars, Path(work), java)
            for jar in jars:
                _store(jar, Path(work) / jar.file_name, folder)
    except OSError as error:
        raise SluiceError(f"{folder}: cannot store Spark's Kafka connector: {error}") from None


def _store(jar: Jar, fetched: Path, folder: Path) -> None:
    digest = _sha256(fetched)
    if digest != jar.sha256:
        raise SluiceError(
            f"{jar.file_name}: the repository returned another file; expected SHA-256 {jar.sha256}, got {digest}"
        )
    fetched.replace(folder / jar.file_name)


def _run_ivy(jars: Sequence[Jar], work: Path, java: Java) -> None:
    ivy_file = work / "ivy.xml"
    ivy_file.write_text(_ivy_file(jars))
    settings = os.environ.get(IVY_SETTINGS)
    if settings and not Path(settings).is_file():
        raise SluiceError(f"{IVY_SETTINGS}={settings}: not a file")
    command: list[str | Path] = [java.program, "-jar", _ivy(), "-error", "-ivy", ivy_file, "-types", "jar"]
    command += ["-cache", work / "ivy", "-retrieve", f"{work}/[artifact]-[revision].[ext]"]
    command += ["-settings", settings] if settings else []
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_S, check=False)  # noqa: S603  (ours)
        why = "" if ran.returncode == 0 else _last_line(ran.stdout + ran.stderr)
    except subprocess.TimeoutExpired:
        why = f"no answer in {_FETCH_S} s"
    missing = [jar.file_name for jar in jars if not (work / jar.file_name).exists()]
    if why or missing:
        raise SluiceError(
            f"cannot download Spark's Kafka connector ({why or 'not found'}). "
            f"Give this machine access to Maven Central once, or set {IVY_SETTINGS}=ivysettings.xml to use another "
            f"repository, or put {', '.join(missing) or 'its jars'} into a folder and pass it with --jars DIR"
        )


def _ivy_file(jars: Sequence[Jar]) -> str:
    """Request each jar (Maven's `master`) without its dependencies."""
    dependencies = "".join(
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)}"
        ' conf="default->master"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="sluice" module="jars"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _ivy() -> Path:
    package = find_spec("pyspark")
    assert package is not None, "called only with PySpark installed"
    assert package.origin is not None
    found = sorted((Path(package.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise SluiceError("this PySpark has no Ivy to download its Kafka connector. Pass jars with --jars DIR")
    return found[0]


def _last_line(output: str) -> str:
    lines = [line.strip(" :\t") for line in output.splitlines()]
    return next((line for line in reversed(lines) if line), "Ivy failed")
