"""Any command as a subject: it is started with the brokers' address, only watched from outside, and ended.

    my-app --bootstrap {bootstrap}

What it is, a producer, a consumer or an admin client, is said, or seen by what it asks for. Its settings nobody knows,
unless they are given: what depends on them is not judged.
"""

import shlex
from collections.abc import Mapping
from pathlib import PurePath

from sluice.audit.judge.model.observation import Role, SubjectInfo
from sluice.audit.probes import Setting
from sluice.errors import ConfigError

from .process import SubjectProcess
from .subject import Job, OnCallback, Running

BOOTSTRAP = "{bootstrap}"
# What an interpreter is given is the application, and not the interpreter.
_SCRIPTS = (".py", ".js", ".mjs", ".rb", ".sh", ".jar")


class CommandSubject:
    """A command, in a process group of its own."""

    virtual = False

    def __init__(self, command: str, role: Role | None = None, settings: Mapping[str, Setting] | None = None) -> None:
        """`settings`: what it is configured to, by Kafka's names. Raises ConfigError for what is no command."""
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise ConfigError(f"subject {command}: {error}: it is read as a shell reads words") from None
        script = (word for word in self._words if PurePath(word).suffix in _SCRIPTS)
        self.name = PurePath(next(script, self._words[0])).name
        self._settings = settings or {}
        self.roles: frozenset[Role] | None = None if role is None else frozenset({role})

    def version(self) -> str:
        return ""

    def missing(self) -> str | None:
        return None

    def info(self, role: Role, settings: Mapping[str, Setting]) -> SubjectInfo:
        return SubjectInfo(name=self.name, role=role, settings=dict(self._settings))

    async def start(self, job: Job, on_callback: OnCallback) -> Running:
        words = [word.replace(BOOTSTRAP, job.bootstrap) for word in self._words]
        return await SubjectProcess.start(words, lambda line: None)

    async def close(self) -> None:
        """Nothing is kept between runs."""
