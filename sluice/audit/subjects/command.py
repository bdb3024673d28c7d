"""Any command as a subject.

    my-app --bootstrap {bootstrap} --topic {topic}

{bootstrap} is HOST:PORT of each broker, separated by commas; {bootstrap_host} and {bootstrap_port} are of the first.
Without its settings, statements that depend on them are not judged.
"""

import re
import shlex
from collections.abc import Mapping
from pathlib import PurePath

from sluice.audit.judge.model.observation import Role, SubjectInfo
from sluice.audit.probes.probe import TOPIC, Setting
from sluice.errors import ConfigError

from .process import SubjectProcess
from .subject import Job, OnCallback, Running, Subject

BOOTSTRAP = "{bootstrap}"
_HOST, _PORT, _TOPIC = "{bootstrap_host}", "{bootstrap_port}", "{topic}"
ADDRESSES = (BOOTSTRAP, _PORT)
# The name is that of the script, not of its interpreter.
_SCRIPTS = (".py", ".js", ".mjs", ".rb", ".sh", ".jar")


class CommandSubject(Subject):
    def __init__(self, command: str, role: Role | None = None, settings: Mapping[str, Setting] | None = None) -> None:
        """Create it with the known settings by Kafka's names. Raises ConfigError."""
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise ConfigError(f"subject {command}: {error}; expected a command in shell syntax") from None
        script = (word for word in self._words if PurePath(word).suffix in _SCRIPTS)
        super().__init__(PurePath(next(script, self._words[0])).name, None if role is None else frozenset({role}))
        self._settings = settings or {}

    def info(self, role: Role, settings: Mapping[str, Setting]) -> SubjectInfo:
        return SubjectInfo(name=self.name, role=role, settings=dict(self._settings), is_command=True)

    async def start(self, job: Job, on_callback: OnCallback) -> Running:
        return await SubjectProcess.start(self.words(job.bootstrap), lambda line: None)

    def words(self, bootstrap: str) -> list[str]:
        """Return the command with the placeholders replaced."""
        host, _, port = bootstrap.partition(",")[0].rpartition(":")
        values = {BOOTSTRAP: bootstrap, _HOST: host, _PORT: port, _TOPIC: TOPIC}
        return [re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], word) for word in self._words]
