"""TLS, SASL, users and ACLs of a test's brokers, and the matching settings of client libraries.

    with SyncBroker(tls=True, sasl="SCRAM-SHA-512", users={"shop": "secret"}) as broker:
        producer = confluent_kafka.Producer(broker.client_config("confluent-kafka"))

Certificates are made by trustme (extra `tls`), once per process. `broker.client()` is the super user `sluice-test`.
"""

import ssl
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple, TypedDict

from sluice.broker.security.acl.acl import CLUSTER_NAME, Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.errors import ConfigError
from sluice.text.arguments import described
from sluice.text.error_text import expected, one_of, unknown

Library = Literal["confluent-kafka", "aiokafka", "kafka-python", "java"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
LIBRARIES: tuple[str, ...] = ("confluent-kafka", "aiokafka", "kafka-python", "java")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_DEFAULT_USERS = {"alice": "alice-secret"}
SUPER_USER = "sluice-test"
_RESOURCES = {"topic": 2, "group": 3, "cluster": 4, "transactional_id": 5}
_PERMISSIONS = {"deny": 2, "allow": 3}
_ACL_FIELDS = ("user", *_PERMISSIONS, *_RESOURCES, "host")
_ACL_EXAMPLE = 'a dict such as {"user": "alice", "allow": ["Read", "Write"], "topic": "orders"}'
_LITERAL, _PREFIXED = 3, 4


class AclFields(TypedDict, total=False):
    """An ACL: a user, allowed or denied operations, and one resource; a name that ends in * is a prefix."""

    user: str
    allow: str | Sequence[str]
    deny: str | Sequence[str]
    topic: str
    group: str
    transactional_id: str
    cluster: Literal[True]
    host: str


class _Files(NamedTuple):
    folder: TemporaryDirectory[str]  # kept, because its finalizer removes the files
    ca: str
    broker: str


class Security:
    """The security of brokers. Without any option, it follows the properties."""

    def __init__(
        self,
        tls: bool,
        sasl: str | None,
        users: Mapping[str, str] | None,
        acls: Sequence[Mapping[str, object]] | None,
        config: Mapping[str, object],
    ) -> None:
        self.tls = tls
        self.sasl = sasl
        for name, given in (("users", users), ("acls", acls)):
            if given is not None and sasl is None:
                raise ConfigError(f'{name}: no users without sasl; set sasl="SCRAM-SHA-512", for example')
        if sasl is not None and sasl not in _MECHANISMS:
            raise ConfigError(f"sasl: {one_of(_MECHANISMS, sasl)}")
        if "listeners" in config and (tls or sasl):
            raise ConfigError("listeners: excluded by tls and sasl, which set it")
        self.users = dict(_DEFAULT_USERS if users is None else users)
        if not self.users:
            raise ConfigError('users: expected at least one user, such as {"alice": "alice-secret"}')
        for user, password in self.users.items():
            if not user or not password or ":" in user or user == SUPER_USER:
                accepted = f"a name without a colon, other than {SUPER_USER}, and a password"
                raise ConfigError(f"users: {expected(accepted, f'{user}:{password}')}")
        self._given_listeners = "listeners" in config
        self._own_password = token_hex(8)
        self.acls = None if acls is None else [acl for index, one in enumerate(acls) for acl in _acls(index, one)]

    @property
    def protocol(self) -> str:
        return f"SASL_{'SSL' if self.tls else 'PLAINTEXT'}" if self.sasl else "SSL" if self.tls else "PLAINTEXT"

    def properties(self) -> dict[str, str]:
        properties = {"listeners": f"{self.protocol}://127.0.0.1:0"}
        if self.tls:
            properties["ssl.keystore.location"] = _files().broker
        if self.sasl:
            users = {**self.users, SUPER_USER: self._own_password}
            logins = [f"{user}:{password}".replace(",", r"\,") for user, password in users.items()]
            properties |= {
                "sasl.enabled.mechanisms": self.sasl,
                "sluice.sasl.users": ",".join(logins),
                "super.users": f"User:{SUPER_USER}",
            }
        if self.acls is not None:
            properties["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        return properties

    def client(self, library: str, bootstrap: str, client_id: str, user: str | None) -> dict[str, object]:
        """Return the settings of a client library for a user; by default the first one."""
        if library not in LIBRARIES:
            raise ConfigError(f"client_config: {one_of(LIBRARIES, library)}")
        if self._given_listeners:
            raise ConfigError(
                "client_config: unknown, as the property listeners is set; use tls, sasl and users instead"
            )
        if user is not None and not self.sasl:
            raise ConfigError("client_config: user: no users without sasl")
        name = user or next(iter(self.users), SUPER_USER)
        if self.sasl and name not in self.users:
            raise ConfigError(f"client_config: user: {one_of(self.users, name)}")
        return self._settings(library, bootstrap, client_id, name, self.users.get(name, ""))

    def own_client(self, bootstrap: str, client_id: str) -> dict[str, str]:
        """Return the settings of sluice's client."""
        settings = self._settings("java", bootstrap, client_id, SUPER_USER, self._own_password)
        return {name: str(value) for name, value in settings.items()}

    def _settings(self, library: str, bootstrap: str, client_id: str, user: str, password: str) -> dict[str, object]:
        dotted = library in ("confluent-kafka", "java")
        settings: dict[str, object] = {"bootstrap.servers": bootstrap, "client.id": client_id}
        if self.protocol != "PLAINTEXT":
            settings["security.protocol"] = self.protocol
        if self.tls:
            settings |= _trust(library, _files().ca)
        if self.sasl:
            settings["sasl.mechanism"] = self.sasl
            names = {"confluent-kafka": "sasl.{}", "java": ""}.get(library, "sasl.plain.{}")
            if names:
                settings |= {names.format("username"): user, names.format("password"): password}
            else:
                settings["sasl.jaas.config"] = _jaas(self.sasl, user, password)
        return settings if dotted else {name.replace(".", "_"): value for name, value in settings.items()}


def _trust(library: str, ca: str) -> dict[str, object]:
    match library:
        case "confluent-kafka":
            return {"ssl.ca.location": ca}
        case "java":
            return {"ssl.truststore.type": "PEM", "ssl.truststore.location": ca}
        case "kafka-python":
            return {"ssl.cafile": ca}
    return {"ssl.context": ssl.create_default_context(cafile=ca)}


def _jaas(mechanism: str, user: str, password: str) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    quoted = [value.replace("\\", r"\\").replace('"', r"\"") for value in (user, password)]
    return f'org.apache.kafka.common.security.{module} required username="{quoted[0]}" password="{quoted[1]}";'


@cache
def _files() -> _Files:
    try:
        import trustme
    except ImportError:
        raise ConfigError("tls: needs trustme; install kafka-sluice[tls], or trustme") from None
    folder = TemporaryDirectory(prefix="sluice-tls-")
    ca, broker = Path(folder.name, "ca.pem"), Path(folder.name, "broker.pem")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(ca))
    authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(str(broker))
    return _Files(folder, str(ca), str(broker))


def _acls(index: int, given: Mapping[str, object]) -> list[Acl]:
    where = f"acls[{index}]"
    for name in given:
        if name not in _ACL_FIELDS:
            raise ConfigError(f"{where}.{name}: {unknown('field', str(name), _ACL_FIELDS)}")
    permissions = [name for name in _PERMISSIONS if name in given]
    resources = [name for name in _RESOURCES if name in given]
    user, host = given.get("user"), given.get("host", "*")
    if len(permissions) != 1 or len(resources) != 1 or not isinstance(user, str) or not isinstance(host, str):
        raise ConfigError(f"{where}: {expected(_ACL_EXAMPLE, given)}")
    resource = given[resources[0]]
    if resources[0] == "cluster":
        resource = CLUSTER_NAME if resource is True else None
    if not isinstance(resource, str) or not resource:
        accepted = "True" if resources[0] == "cluster" else 'a name, or a prefix such as "ord*"'
        raise ConfigError(f"{where}.{resources[0]}: {expected(accepted, described(given[resources[0]]))}")
    is_prefix = resource.endswith("*") and resource != "*"
    return [
        Acl(
            ResourceType(_RESOURCES[resources[0]]),
            resource.removesuffix("*") if is_prefix else resource,
            PatternType(_PREFIXED if is_prefix else _LITERAL),
            f"User:{user}",
            host,
            operation,
            AclPermissionType(_PERMISSIONS[permissions[0]]),
        )
        for operation in _operations(f"{where}.{permissions[0]}", given[permissions[0]])
    ]


def _operations(where: str, given: object) -> list[AclOperation]:
    known = {one.name.title().replace("_", ""): one for one in AclOperation if one > AclOperation.ANY}
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not names:
        accepted = f"one or more of {', '.join(known)}"
        raise ConfigError(f"{where}: {expected(accepted, described(given))}")
    found = []
    for name in names:
        operation = {key.lower(): value for key, value in known.items()}.get(str(name).lower().replace("_", ""))
        if operation is None:
            raise ConfigError(f"{where}: {one_of(known, str(name))}")
        found.append(operation)
    return found
