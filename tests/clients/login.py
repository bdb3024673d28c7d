"""How clients log in: TLS and SASL, as settings of each Python library.

The clients of the matrix log in as the JSON of the environment variable `SLUICE_TEST_LOGIN` states, with the fields of
`Login`; without it, they use plain text. The drivers in other languages read the same variable.
"""

import json
import os
import ssl
from pathlib import Path
from typing import Any, NamedTuple

VARIABLE = "SLUICE_TEST_LOGIN"


class Login(NamedTuple):
    """The security settings of a client."""

    protocol: str
    ca: str | Path = ""
    certificate: str | Path = ""
    mechanism: str = ""
    user: str = "alice"
    password: str = "alice-secret"
    expires_in_s: int = 3600  # of an OAUTHBEARER token


def of_the_matrix() -> Login:
    """Return the login of the matrix, which is plain text unless the variable is set."""
    return Login(**json.loads(os.environ.get(VARIABLE) or '{"protocol": "PLAINTEXT"}'))


def context(login: Login) -> ssl.SSLContext | None:
    if not login.ca:
        return None
    context = ssl.create_default_context(cafile=login.ca)
    if login.certificate:
        context.load_cert_chain(login.certificate)
    return context


def of_python(bootstrap: str, login: Login | None = None) -> dict[str, Any]:
    """Return the connection settings of kafka-python and of aiokafka."""
    login = login or of_the_matrix()
    config = {"bootstrap_servers": bootstrap, "security_protocol": login.protocol, "ssl_context": context(login)}
    if login.mechanism:
        config |= {"sasl_mechanism": login.mechanism}
    if login.mechanism not in ("", "OAUTHBEARER"):
        config |= {"sasl_plain_username": login.user, "sasl_plain_password": login.password}
    return config


def of_librdkafka(bootstrap: str, login: Login | None = None) -> dict[str, Any]:
    """Return the connection settings of confluent-kafka."""
    login = login or of_the_matrix()
    config = {"bootstrap.servers": bootstrap, "security.protocol": login.protocol}
    if login.ca:
        config |= {"ssl.ca.location": str(login.ca)}
    if login.certificate:
        config |= {"ssl.certificate.location": str(login.certificate), "ssl.key.location": str(login.certificate)}
    if login.mechanism:
        config |= {"sasl.mechanisms": login.mechanism}
    if login.mechanism not in ("", "OAUTHBEARER"):
        config |= {"sasl.username": login.user, "sasl.password": login.password}
    return config
