"""The connector's jars as files: from a folder that is given, else from the cache, else from Maven Central, once.

They are fetched by the Ivy that is inside PySpark, which knows where Maven Central is. `SLUICE_IVY_SETTINGS` names
another settings file of Ivy's, for those who must use a repository of their own. Whatever a repository gives, only what
has the digest that is known here is taken.
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
    """The jars of a folder of one's own, in which nothing of the connector for this PySpark may be missing."""
    if not folder.is_dir():
        raise SluiceError(f"{folder}: is not a folder")
    jars = sorted(folder.glob("*.jar"))
    missing = [name for name in (_CONNECTOR, *_BESIDE) if not any(jar.name.startswith(name) for jar in jars)]
    if missing:
        raise SluiceError(f"{folder}: Spark's Kafka connector needs there a jar of {', '.join(missing)}")
    wrong = [jar.name for jar in jars if jar.name.startswith(_CONNECTOR) and f"-{pyspark_version}" not in jar.name]
    if wrong:
        raise SluiceError(f"{folder}: {wrong[0]} is not the connector of PySpark {pyspark_version}")
    return jars


def fetched_jars(pyspark_version: str, java: Java) -> list[Path]:
    """The jars that this PySpark needs, from the cache, into which they come first if they are not there."""
    wanted = connector_for(pyspark_version)
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
                _take(jar, Path(work) / jar.file_name, folder)
    except OSError as error:
        raise SluiceError(f"{folder}: Spark's Kafka connector cannot be kept there: {error}") from None


def _take(jar: Jar, fetched: Path, folder: Path) -> None:
    digest = _sha256(fetched)
    if digest != jar.sha256:
        raise SluiceError(
            f"{jar.file_name}: the repository's has the SHA-256 {digest}, not {jar.sha256}, and was not taken"
        )
    fetched.replace(folder / jar.file_name)


def _run_ivy(jars: Sequence[Jar], work: Path, java: Java) -> None:
    """Puts the jars into `work`. Raises SluiceError where they cannot be had."""
    ivy_file = work / "ivy.xml"
    ivy_file.write_text(_ivy_file(jars))
    settings = os.environ.get(IVY_SETTINGS)
    if settings and not Path(settings).is_file():
        raise SluiceError(f"{IVY_SETTINGS}={settings}: is not a file")
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
            f"Spark's Kafka connector could not be fetched ({why or 'not found'}): "
            f"let this machine reach Maven Central once, or name a repository by {IVY_SETTINGS}=ivysettings.xml, "
            f"or put {', '.join(missing) or 'its jars'} into a folder and give that with --jars DIR"
        )


def _ivy_file(jars: Sequence[Jar]) -> str:
    """What Ivy is to fetch: of each the jar alone (Maven's `master`), not what it depends on."""
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
    assert package is not None, "only asked with PySpark installed"
    assert package.origin is not None
    found = sorted((Path(package.origin).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise SluiceError("PySpark comes without the Ivy that fetches its Kafka connector: give jars with --jars DIR")
    return found[0]


def _last_line(output: str) -> str:
    lines = [line.strip(" :\t") for line in output.splitlines()]
    return next((line for line in reversed(lines) if line), "Ivy failed")
