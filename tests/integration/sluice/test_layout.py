"""One import package, four folders of which are at the top of the repository, and each way to install it works."""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import skips

ROOT = Path(__file__).parents[3]
# The links in sluice/ list the packages at the top; a clone may have none.
LINKS = {path.name: path.readlink() for path in (ROOT / "sluice").iterdir() if path.is_symlink()}
FOLDERS = sorted({path.parent.name for path in ROOT.glob("*/__init__.py")} - {"bench", "sluice", "tests", "tools"})

# Without extras: their import takes seconds, and PySpark may be half installed, by another part of the suite.
IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import sluice
extras = ("matplotlib", "numpy", "pandas", "py4j", "pyarrow", "pyspark")
sys.modules |= dict.fromkeys(extras)
for module in pkgutil.walk_packages(sluice.__path__, "sluice."):
    if module.name != "sluice.__main__":
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name.partition(".")[0] not in extras:
                raise
"""
PRINT_MODULES = """
import json, sys
print(json.dumps({name: module.__file__ for name, module in sys.modules.items() if getattr(module, "__file__", None)}))
"""


def _run(*command: str | Path, cwd: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    result = subprocess.run(command, cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def _modules(python: str | Path, cwd: Path, imports: str = IMPORT_EVERYTHING, **environment: str) -> dict[str, str]:
    modules = json.loads(_run(python, "-c", imports + PRINT_MODULES, cwd=cwd, **environment))
    assert isinstance(modules, dict)
    return modules


def _sources() -> set[str]:
    """Return the import package's files with their names in a wheel."""
    files = {str(path.relative_to(ROOT)) for path in _files(ROOT / "sluice")}
    return files.union(*({f"sluice/{path.relative_to(ROOT)}" for path in _files(ROOT / folder)} for folder in FOLDERS))


def _files(folder: Path) -> Iterator[Path]:
    """Return the files below a folder without following links."""
    for path in folder.iterdir():
        if path.is_symlink() or path.name == "__pycache__":
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


def _hatch(target: str, source: Path, to: Path) -> Path:
    _run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", to, cwd=source)
    (built,) = to.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _hatch("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a clean environment with the wheel, and dependencies from this environment."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    uv = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--python", home / "bin/python")
    _run(*uv, "--no-deps", "--no-index", wheel, cwd=home)
    # A plain path in a .pth file: .pth files in that folder, such as the checkout's, are not processed.
    packages = Path(_run(home / "bin/python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home))
    (Path(str(packages).strip()) / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return home


@pytest.mark.skipif(not LINKS, reason=skips.system("symbolic links in this checkout"))
def test_each_package_at_the_top_has_its_link() -> None:
    assert {folder: Path("..") / folder for folder in FOLDERS} == LINKS


def test_image_is_built_from_the_packages() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {name for name in allowed if (ROOT / name).is_dir()} == {"sluice", *FOLDERS}


@pytest.mark.parametrize("folder", FOLDERS)
def test_second_name_of_a_package_cannot_be_imported(folder: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: import sluice.{folder}, not {folder}: a second name would make a second copy of every class"
    )


def test_no_module_has_two_names(tmp_path: Path) -> None:
    modules = _modules(sys.executable, tmp_path)
    assert "sluice.protocol" in modules
    assert [folder for folder in FOLDERS if folder in modules] == []
    ours = [Path(file).resolve() for name, file in modules.items() if name.split(".")[0] == "sluice"]
    assert len(ours) == len(set(ours))


def test_wheel_contains_only_the_package(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == _sources()


def test_distributions_are_publishable(wheel: Path) -> None:
    _run(sys.executable, "-m", "twine", "check", "--strict", wheel, cwd=wheel.parent)
    _run(sys.executable, "-m", "check_wheel_contents", "--config", ROOT / "pyproject.toml", wheel, cwd=wheel.parent)


def test_source_distribution_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = _hatch("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        assert [member.name for member in archive if member.issym() or member.islnk()] == []
        archive.extractall(tmp_path, filter="data")
    again = _hatch("wheel", tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path / "wheel")
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_installed_wheel_imports_from_its_own_folder(installed: Path, tmp_path: Path) -> None:
    modules = _modules(installed / "bin/python", tmp_path)
    ours = {name: file for name, file in modules.items() if name.split(".")[0] == "sluice"}
    assert {name.split(".")[1] for name in ours if "." in name} >= set(FOLDERS)
    assert [file for file in ours.values() if not file.startswith(str(installed))] == []


def test_installed_command_runs_a_broker(installed: Path, wheel: Path, tmp_path: Path) -> None:
    assert _run(installed / "bin/sluice", "--version", cwd=tmp_path) == f"sluice {wheel.name.split('-')[1]}\n"
    command: list[str | Path] = [installed / "bin/sluice", "serve", "--port", "0", "--admin-port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        assert broker.stderr is not None
        line = broker.stdout.readline()
        broker.send_signal(signal.SIGTERM)
        assert broker.wait() == 0, broker.stderr.read()
    assert line.startswith('ready {"bootstrap": "127.0.0.1:')


def test_clone_without_symlinks_works(tmp_path: Path) -> None:
    """With core.symlinks off, Git writes a link as a text file that contains its target."""
    (tmp_path / "sluice").mkdir()
    for path in (ROOT / "sluice").iterdir():
        if path.name in FOLDERS:
            (tmp_path / "sluice" / path.name).write_text(f"../{path.name}")
        elif path.is_file():
            shutil.copy(path, tmp_path / "sluice")
        else:
            shutil.copytree(path, tmp_path / "sluice" / path.name)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    # Not everything: compiling a copy of all modules takes seconds.
    imports = "".join(f"import sluice.{folder}\n" for folder in FOLDERS)
    modules = _modules(sys.executable, tmp_path, imports, PYTHONPATH=str(tmp_path))
    for folder in FOLDERS:
        assert modules[f"sluice.{folder}"] == str(tmp_path / folder / "__init__.py")
