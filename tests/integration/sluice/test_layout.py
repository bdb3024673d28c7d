"""One import package over top-level folders: links, build settings and bans agree, and each way of installing works."""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HATCH = PYPROJECT["tool"]["hatch"]["build"]
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name not in ("tests", "bench"))
FOLDERS = [name for name in PACKAGES if name != "sluice"]

# Folder by folder: where links are missing the repository's root is on the package's path, and a walk over that would
# find `sluice.sluice`, and so on without end.
IMPORT_EVERYTHING = """
import importlib, json, pkgutil, sys
import sluice
found = list(pkgutil.iter_modules(sluice.__path__[:1], "sluice."))
for folder in sys.argv[1:]:
    package = importlib.import_module(f"sluice.{folder}")
    found += pkgutil.walk_packages(package.__path__, f"sluice.{folder}.")
for module in found:
    if module.name != "sluice.__main__":
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name not in ("matplotlib", "numpy", "pandas", "py4j", "pyarrow", "pyspark"):  # an extra
                raise
print(json.dumps({name: module.__file__ for name, module in sys.modules.items() if getattr(module, "__file__", None)}))
"""


def _run(*command: str | Path, cwd: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    result = subprocess.run(command, cwd=cwd, env=kept | environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def _modules(python: str | Path, cwd: Path, **environment: str) -> dict[str, str]:
    modules = json.loads(_run(python, "-c", IMPORT_EVERYTHING, *FOLDERS, cwd=cwd, **environment))
    assert isinstance(modules, dict)
    return modules


def _sources() -> set[str]:
    """The files of the import package, as a wheel names them."""
    files = {f"sluice/{path.relative_to(ROOT / 'sluice')}" for path in _files(ROOT / "sluice")}
    for folder in FOLDERS:
        files |= {f"sluice/{path.relative_to(ROOT)}" for path in _files(ROOT / folder)}
    return files


def _files(folder: Path) -> Iterator[Path]:
    """The files below a folder, links not followed."""
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
    """A clean environment with the wheel in it, and its dependencies taken from this one; returns its folder."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        home / "bin/python",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
    ]
    _run(*command, wheel, cwd=home)
    # A plain path: what this environment's own .pth files add, the checkout among them, is not followed from here.
    packages = Path(_run(home / "bin/python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home))
    (Path(str(packages).strip()) / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return home


def test_every_folder_has_its_link() -> None:
    links = {path.name: path.readlink() for path in (ROOT / "sluice").iterdir() if path.is_symlink()}
    if not links:
        pytest.skip("this checkout has no symlinks")
    assert links == {folder: Path("..") / folder for folder in FOLDERS}


def test_the_lists_of_the_build_and_of_ruff_name_every_folder_and_nothing_else() -> None:
    ruff, wheel = PYPROJECT["tool"]["ruff"], HATCH["targets"]["wheel"]
    assert sorted(wheel["only-include"]) == PACKAGES
    assert wheel["sources"] == {"sluice": "sluice"} | {folder: f"sluice/{folder}" for folder in FOLDERS}
    assert sorted(HATCH["exclude"]) == [f"/sluice/{folder}" for folder in FOLDERS], "a link would go in a second time"
    assert sorted(ruff["extend-exclude"]) == [f"sluice/{folder}" for folder in FOLDERS]
    assert set(FOLDERS) < set(ruff["lint"]["flake8-tidy-imports"]["banned-api"]), "a bare name is a second import name"


def test_no_module_has_two_names(tmp_path: Path) -> None:
    modules = _modules(sys.executable, tmp_path)
    assert "sluice.protocol" in modules
    assert [folder for folder in FOLDERS if folder in modules] == []
    ours = [Path(file).resolve() for name, file in modules.items() if name.split(".")[0] == "sluice"]
    assert len(ours) == len(set(ours))


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == _sources()


def test_what_is_built_is_fit_to_be_published(wheel: Path) -> None:
    _run(sys.executable, "-m", "twine", "check", "--strict", wheel, cwd=wheel.parent)
    _run(sys.executable, "-m", "check_wheel_contents", "--config", ROOT / "pyproject.toml", wheel, cwd=wheel.parent)


def test_the_source_distribution_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = _hatch("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        assert [member.name for member in archive if member.issym() or member.islnk()] == []
        archive.extractall(tmp_path, filter="data")
    again = _hatch("wheel", tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path / "wheel")
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_the_installed_wheel_imports_from_its_own_place(installed: Path, tmp_path: Path) -> None:
    modules = _modules(installed / "bin/python", tmp_path)
    ours = {name: file for name, file in modules.items() if name.split(".")[0] == "sluice"}
    assert {name.split(".")[1] for name in ours if "." in name} >= set(FOLDERS)
    assert [file for file in ours.values() if not file.startswith(str(installed))] == []


def test_the_installed_command_runs_a_broker(installed: Path, wheel: Path, tmp_path: Path) -> None:
    assert _run(installed / "bin/sluice", "--version", cwd=tmp_path) == f"sluice {wheel.name.split('-')[1]}\n"
    command: list[str | Path] = [installed / "bin/sluice", "serve", "--port", "0", "--admin-port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        assert broker.stderr is not None
        line = broker.stdout.readline()
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(timeout=10) == 0, broker.stderr.read()
    assert line.startswith('ready {"bootstrap": "127.0.0.1:')


def test_a_clone_without_symlinks_works(tmp_path: Path) -> None:
    """Git writes a link as a text file with its target where core.symlinks is off."""
    (tmp_path / "sluice").mkdir()
    for path in (ROOT / "sluice").iterdir():
        if path.name in FOLDERS:
            (tmp_path / "sluice" / path.name).write_text(f"../{path.name}")
        elif path.is_file():
            shutil.copy(path, tmp_path / "sluice")
        else:
            shutil.copytree(path, tmp_path / "sluice" / path.name, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    modules = _modules(sys.executable, tmp_path, PYTHONPATH=str(tmp_path))
    for folder in FOLDERS:
        assert modules[f"sluice.{folder}"] == str(tmp_path / folder / "__init__.py")
