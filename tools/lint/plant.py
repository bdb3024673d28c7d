"""A plant: a misconfiguration that a rule must find, in several clients, and its remedy, after which it must not."""

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from tools.lint.job import Job, Settings
from tools.lint.scene import Scene

Changes = Mapping[str, Any]  # values by the names of fields
_NONE: Changes = MappingProxyType({})


class Cell(NamedTuple):
    """The settings of one client, with the names of its library, planted and remedied."""

    planted: Settings
    remedied: Settings


class Plant(NamedTuple):
    """A misconfiguration.

    A plant is in settings (`cells`), in what the application does (`planted`, `remedied`), or in both.

    rule: id of the rule that must find it
    scene: what is common to the planted and the remedied run, for a seed: sizes, counts and times vary
    cells: settings by client, of the jobs with the first one's client id; a client without settings: NOTHING
    planted: fields of the first job that plant it, beyond those of the scene
    remedied: the same for the remedied run
    also: ids of rules that rightly find something in the planted run, too
    remedied_scene: fields of the scene in the remedied run
    """

    rule: str
    scene: Callable[[Random], Scene]
    cells: Mapping[str, Cell]
    planted: Changes = _NONE
    remedied: Changes = _NONE
    also: frozenset[str] = frozenset()
    remedied_scene: Changes = _NONE

    def scene_of(self, client: str, seed: int, *, is_planted: bool) -> Scene:
        """Return the run of a client for a seed."""
        scene = self.scene(Random(seed))
        cell = self.cells[client]
        settings = cell.planted if is_planted else cell.remedied
        changes = self.planted if is_planted else self.remedied
        jobs = [
            msgspec.structs.replace(each, settings=each.settings | settings)
            if each.client_id == scene.jobs[0].client_id
            else each
            for each in scene.jobs
        ]
        jobs[0] = msgspec.structs.replace(jobs[0], **changes)
        scene = msgspec.structs.replace(scene, jobs=jobs)
        return scene if is_planted else msgspec.structs.replace(scene, **self.remedied_scene)


NOTHING = Cell({}, {})
PYTHON = ("aiokafka", "kafka-python", "kafka-python-2")
DOTTED = ("confluent-kafka", "java-4", "java-3.9")


def setting(name: str, **others: str) -> dict[str, str]:
    """Return the name of a setting by client; those of others are given, with `_` for `-`."""
    named = dict.fromkeys(PYTHON, name.replace(".", "_")) | dict.fromkeys(DOTTED, name)
    return named | {client.replace("_", "-"): own for client, own in others.items()}


def value_of(client: str, names: Mapping[str, str], ms: int) -> Settings:
    return {names[client]: str(ms) if client.startswith("java") else ms}


def anyhow(*clients: str) -> Mapping[str, Cell]:
    """Return cells for a plant that is only in what the application does."""
    return dict.fromkeys(clients, NOTHING)


def producing(random: Random, **fields: Any) -> Job:
    """Return a healthy producer of a few seconds."""
    usual = {
        "role": "produce",
        "bursts": random.randint(15, 30),
        "records": random.randint(5, 20),
        "size": random.randint(50, 300),
        "every_ms": random.randint(60, 120),
    }
    return msgspec.convert(usual | fields, Job)


def consuming(random: Random, **fields: Any) -> Job:
    """Return a healthy consumer of a few seconds."""
    usual = {"role": "consume", "group": "shop", "for_ms": random.randint(7_000, 9_000)}
    return msgspec.convert(usual | fields, Job)
