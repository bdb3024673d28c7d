"""Deployment files agree: image, compose file, Prometheus, lock files and Makefile; no container engine needed."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice.config.broker_config import Config
from sluice.spark.connector import CONNECTORS
from tests.support import skips

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
PROMETHEUS = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text())


def _final_stage(keyword: str) -> list[str]:
    stage = DOCKERFILE.split("\nFROM ")[-1].replace("\\\n", " ")
    return [line.removeprefix(keyword).strip() for line in stage.splitlines() if line.startswith(keyword)]


def _image_environment() -> dict[str, str]:
    pairs = " ".join(_final_stage("ENV")).split()
    return dict(pair.split("=", 1) for pair in pairs)


def test_compose_file_follows_the_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    result = subprocess.run([*command, ROOT / "docker-compose.yml"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_image_runs_the_broker_without_root() -> None:
    assert json.loads(_final_stage("ENTRYPOINT")[0]) == ["sluice"]
    assert json.loads(_final_stage("CMD")[0]) == ["serve"]
    assert json.loads(_final_stage("HEALTHCHECK")[0].split("CMD")[1]) == ["sluice", "healthcheck"]
    assert int(_final_stage("USER")[0].split(":")[0]) > 0
    assert _final_stage("EXPOSE")[0].split() == ["9092", "9644"]


def test_image_listens_on_all_addresses_with_an_advertised_one() -> None:
    config = Config.load(environ=_image_environment())
    assert config.warnings == []
    assert [(listener.host, listener.port) for listener in config.listeners()] == [("0.0.0.0", 9092)]
    assert [(listener.host, listener.port) for listener in config.advertised_listeners()] == [("localhost", 9092)]


def test_compose_file_configures_the_broker_without_warnings() -> None:
    environment = COMPOSE["services"]["sluice"]["environment"] | {"KAFKA_SLUICE_ADMIN_TOKEN": "secret"}
    config = Config.load(environ=_image_environment() | environment)
    assert config.warnings == []
    advertised = {listener.name: (listener.host, listener.port) for listener in config.advertised_listeners()}
    assert advertised == {"PLAINTEXT": ("localhost", 9092), "INTERNAL": ("sluice", 19092)}
    assert {listener.name for listener in config.listeners()} == advertised.keys()
    assert "127.0.0.1:9092:9092" in COMPOSE["services"]["sluice"]["ports"]


def test_prometheus_scrapes_the_admin_port_with_its_token() -> None:
    (job,) = PROMETHEUS["scrape_configs"]
    ((target,),) = (static["targets"] for static in job["static_configs"])
    host, port = target.split(":")
    assert host in COMPOSE["services"]
    assert port in _final_stage("EXPOSE")[0].split()
    (secret,) = COMPOSE["services"]["prometheus"]["secrets"]
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    variable = COMPOSE["secrets"][secret]["environment"]
    assert COMPOSE["services"]["sluice"]["environment"]["KAFKA_SLUICE_ADMIN_TOKEN"].startswith(f"${{{variable}:?")
    mounted = COMPOSE["services"]["prometheus"]["volumes"][0].split(":")[0]
    assert (ROOT / mounted).is_file()


def test_files_mounted_by_the_compose_file_exist() -> None:
    volumes = [volume for service in COMPOSE["services"].values() for volume in service.get("volumes", [])]
    assert volumes
    assert [volume for volume in volumes if not (ROOT / volume.split(":")[0]).exists()] == []
    assert [volume for volume in volumes if not volume.endswith(":ro")] == []


DOCKERFILES = {path.name: path.read_text() for path in (ROOT / "Dockerfile", ROOT / "deploy" / "spark.Dockerfile")}
_PINNED = re.compile(r"[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}")


def _dockerfile(service: dict[str, Any]) -> str:
    build = service["build"]
    return DOCKERFILES["Dockerfile" if build == "." else build["dockerfile"]]


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_service_has_a_pinned_image_a_health_check_and_a_memory_limit(name: str) -> None:
    service = COMPOSE["services"][name]
    if "build" in service:
        images = re.findall(r"^FROM (\S+)", _dockerfile(service), re.MULTILINE)
    else:
        images = [service["image"]]
    assert images
    assert [image for image in images if not _PINNED.fullmatch(image)] == []
    assert "healthcheck" in service or "\nHEALTHCHECK " in _dockerfile(service)
    assert re.fullmatch(r"\d+[mg]", service["mem_limit"])


def test_image_of_spark_contains_the_jars_of_its_version() -> None:
    text = DOCKERFILES["spark.Dockerfile"]
    version = re.findall(r"^FROM apache/spark:([\d.]+)-", text, re.MULTILINE)
    added = re.findall(r"--checksum=sha256:(\w+) \\\n +https://repo1.maven.org/maven2/(\S+) ", text)
    assert {tuple(each) for each in added} == {
        (jar.sha256, f"{jar.group.replace('.', '/')}/{jar.artifact}/{jar.version}/{jar.file_name}")
        for jar in CONNECTORS[version[0]]
    }
    assert not any("--packages" in word for word in COMPOSE["services"]["spark"]["command"])


def test_spark_job_of_the_compose_file_is_an_example_started_by_its_profile() -> None:
    spark = COMPOSE["services"]["spark"]
    assert spark["profiles"] == ["spark"]
    (job,) = (word for word in spark["command"] if word.endswith(".py"))
    file = ROOT / "examples" / Path(job).name
    ast.parse(file.read_text(), feature_version=(3, 10))  # the image's Python version
    assert spark["command"][-1] == "sluice:19092"


def _name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match.group()).lower()


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


LOCKS = {
    "for development": ("requirements/dev.lock", {"demo", "dev"}),
    "for a release": ("requirements/dist.lock", {"dist"}),
    "for the documentation": ("requirements/docs.lock", {"docs"}),
    "for fuzzing": ("requirements/fuzz.lock", {"fuzz"}),
    "for the mutation check": ("requirements/mutation.lock", {"mutation"}),
    "for Spark": ("requirements/spark.lock", {"spark"}),
}


@pytest.mark.parametrize(("lock_name", "extras"), LOCKS.values(), ids=LOCKS)
def test_lock_pins_every_dependency_and_names_no_registry(lock_name: str, extras: set[str]) -> None:
    lock = (ROOT / lock_name).read_text()
    assert "://" not in lock
    assert "--" not in lock
    pinned = {_name(line) for line in lock.splitlines()}
    assert [line for line in lock.splitlines() if "==" not in line] == []
    optional = chain.from_iterable(PROJECT["optional-dependencies"][extra] for extra in extras)
    wanted = {_name(line) for line in [*PROJECT["dependencies"], *optional]} - {_name(PROJECT["name"])}
    assert wanted <= pinned, "dependencies changed; rebuild the lock files"


@pytest.mark.skipif(shutil.which("make") is None, reason=skips.program("make", "install it"))
def test_make_lists_its_targets() -> None:
    shown = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = [line.split()[1] for line in shown.splitlines()]
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert targets == phony[1].split(), "each target has a description, and is in .PHONY in the file's order"
