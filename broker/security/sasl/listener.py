"""The SASL configuration of one listener: mechanisms, users and session lifetime.

Follows ChannelBuilders, SaslChannelBuilder and JaasContext. Different on purpose: SCRAM and OAUTHBEARER need no login
module; `sasl.jaas.config` without a mechanism's prefix, which Kafka's brokers ignore, applies to all listeners.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping

from sluice.broker.requests.runtime import Runtime
from sluice.config.listener_config import ListenerConfig
from sluice.config.value_types import parse_users
from sluice.text.error_text import expected

from .jaas import OAUTHBEARER_MODULE, PLAIN_MODULE, SCRAM_MODULE, parse_jaas
from .mechanism import Mechanism
from .oauthbearer import OAuthBearerMechanism, Validate
from .plain import PlainMechanism
from .scram import ScramServerMechanism
from .scram_credentials import ScramCredentials, ScramMechanism
from .unsecured_jws import TokenValidator

_ENABLED = "sasl.enabled.mechanisms"
_JAAS = "sasl.jaas.config"
_JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
_USERS = "sluice.sasl.users"
_REAUTH = "connections.max.reauth.ms"
_MAX_RECEIVE = "sasl.server.max.receive.size"
_USER_OPTION = "user_"
_NONCE_BYTES = 18  # 24 characters; Kafka's have 25 of base 36

_MODULES = {
    "PLAIN": PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    "OAUTHBEARER": OAUTHBEARER_MODULE,
}
# The first release with a mechanism; default: 0.10.
_SINCE = {"SCRAM-SHA-256": (0, 10, 2), "SCRAM-SHA-512": (0, 10, 2), "OAUTHBEARER": (2, 0)}

NewMechanism = Callable[[], Mechanism]


class SaslListener:
    """The mechanisms of a listener, each with a factory of exchanges."""

    def __init__(
        self, config: ListenerConfig, runtime: Runtime, scram_credentials: Callable[[], ScramCredentials]
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._scram_credentials = scram_credentials
        self.name = config.listener
        self.max_receive_bytes = config.integer(_MAX_RECEIVE)
        self.mechanisms = {name: self._mechanism(name) for name in self._enabled()}
        self._max_reauth_ms = {name: config.integer(_REAUTH, name) for name in self.mechanisms}

    def session_lifetime_ms(self, mechanism: str, expires_at_ms: int | None, now_ms: int) -> int | None:
        """Return the lifetime of a session (KIP-368), from the credential's `expires_at_ms`; None: unlimited."""
        limit_ms = self._max_reauth_ms[mechanism]
        limits = [limit_ms] if limit_ms > 0 else []
        if expires_at_ms is not None:
            limits.append(expires_at_ms - now_ms)
        return max(0, min(limits)) if limits else None

    def _enabled(self) -> list[str]:
        release = self._runtime.config.text("sluice.kafka.release")
        served = [name for name in _MODULES if _release_has(release, name)]
        enabled = self._config.names(_ENABLED)
        if self._config.is_set(_ENABLED):
            for name in enabled:
                if name not in served:
                    where = "" if release == "all" else f" of {release}"
                    raise self._config.wrong(_ENABLED, expected(f"mechanisms{where} ({', '.join(served)})", name))
        chosen = [name for name in enabled if name in served]
        if not chosen:
            accepted = (
                f"at least one of {', '.join(served)}" if served else f"a later sluice.kafka.release than {release}"
            )
            raise self._config.wrong(_ENABLED, f"no mechanism for listener {self.name}; expected {accepted}")
        return chosen

    def _mechanism(self, name: str) -> NewMechanism:
        options = self._options(name)
        if name == "PLAIN":
            return self._plain(options)
        if name == "OAUTHBEARER":
            return self._oauthbearer(options)
        return self._scram(name)

    def _plain(self, options: Mapping[str, str]) -> NewMechanism:
        of_module = {
            option.removeprefix(_USER_OPTION): password
            for option, password in options.items()
            if option.startswith(_USER_OPTION)
        }
        passwords = parse_users(self._runtime.config.text(_USERS)) | of_module
        if not passwords and self._config.is_set(_ENABLED):
            problem = f'PLAIN has no users; add user_NAME="PASSWORD" to {PLAIN_MODULE}, or set {_USERS}'
            raise self._config.wrong(_JAAS, problem, "PLAIN")
        return lambda: PlainMechanism(passwords)

    def _scram(self, name: str) -> NewMechanism:
        mechanism = next(mechanism for mechanism in ScramMechanism if mechanism.sasl_name == name)
        credentials, random_bytes = self._scram_credentials(), self._runtime.random.randbytes

        def new_nonce() -> str:
            return b64encode(random_bytes(_NONCE_BYTES)).decode()

        return lambda: ScramServerMechanism(mechanism, credentials, new_nonce)

    def _oauthbearer(self, options: Mapping[str, str]) -> NewMechanism:
        validate = self._signed_tokens() if self._config.text(_JWKS_URL) else self._unsecured_tokens(options)
        return lambda: OAuthBearerMechanism(validate, self._runtime.clock.wall_ms)

    def _unsecured_tokens(self, options: Mapping[str, str]) -> Validate:
        try:
            return TokenValidator(options).validate
        except ValueError as error:
            raise self._config.wrong(_JAAS, str(error), "OAUTHBEARER") from None

    def _signed_tokens(self) -> Validate:
        try:
            from .signed_jwt import SignedTokenValidator
        except ModuleNotFoundError as missing:
            raise self._config.wrong(
                _JWKS_URL, f"{missing.name} is not installed; install kafka-sluice[oauth]"
            ) from None
        return SignedTokenValidator(self._config).validate

    def _options(self, mechanism: str) -> dict[str, str]:
        module = _MODULES[mechanism]
        key = self._config.key(_JAAS, mechanism)
        text = self._config.text(_JAAS, mechanism)
        if text is None:
            return {}
        try:
            modules = parse_jaas(text)
        except ValueError as error:
            raise self._config.wrong(_JAAS, str(error), mechanism) from None
        own = [entry for entry in modules if entry.name == module]
        if key.endswith(f".{mechanism.lower()}.{_JAAS}") and own != modules[:1]:
            raise self._config.wrong(_JAAS, f"expected one login module, {module}", mechanism)
        # As in Kafka, of two login modules of one class the first one with an option wins.
        return {key: value for entry in reversed(own) for key, value in entry.options.items()}


def _release_has(release: str, mechanism: str) -> bool:
    if release == "all":
        return True
    numbers = tuple(int(number) for number in release.removeprefix("kafka-").split("."))
    return numbers >= _SINCE.get(mechanism, (0, 10))
