"""Custom quotas: the Python form of Kafka's `ClientQuotaCallback` (KIP-257).

`client.quota.callback.class` is the dotted path of a class that maps clients to metric tags, and tags to limits. It is
notified of quotas set by AlterClientQuotas. If a method raises, the configured quotas apply; the error is logged once,
until that method succeeds again. Methods run on the broker's only thread and must not block.
"""

import logging
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from math import isfinite
from typing import Protocol, TypeVar

from sluice.errors import ConfigError

from .entity import Bucket, QuotaEntity, QuotaTable

PROPERTY = "client.quota.callback.class"
_USER, _CLIENT_ID = "user", "client-id"

log = logging.getLogger("sluice.quotas")

_T = TypeVar("_T")


class ClientQuotaType(Enum):
    PRODUCE = "Produce"
    FETCH = "Fetch"
    REQUEST = "Request"
    CONTROLLER_MUTATION = "ControllerMutation"


# Topic -> the leaders' node ids by partition index; -1: no leader.
Cluster = Mapping[str, tuple[int, ...]]


class ClientQuotaCallback(Protocol):
    """The methods that the class must have. Its constructor is called without arguments."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """Accept the broker's properties. Called once, before all other methods."""

    def quota_metric_tags(self, quota_type: ClientQuotaType, principal: str, client_id: str) -> Mapping[str, str]:
        """Return the tags of a client; clients with equal tags share one limit. Called for each request."""

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """Return the limit per second for these tags, above 0; None: no limit."""

    def update_quota(self, quota_type: ClientQuotaType, quota_entity: QuotaEntity, new_value: float) -> None:
        """Accept a new or changed quota."""

    def remove_quota(self, quota_type: ClientQuotaType, quota_entity: QuotaEntity) -> None:
        """Accept the removal of a quota."""

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        """Return whether limits may have changed since the last call. Called for each request."""

    def update_cluster_metadata(self, cluster: Cluster) -> bool:
        """Accept changed topics, partitions or leaders; return whether limits have changed with them."""

    def close(self) -> None:
        """Release resources. Called once, at the end."""


def load_callback(path: str, configs: Mapping[str, str]) -> ClientQuotaCallback:
    """Raise ConfigError if the class cannot be loaded or configured."""
    module, _, name = path.rpartition(".")
    try:
        callback: ClientQuotaCallback = getattr(import_module(module), name)()
        callback.configure(configs)
    except Exception as error:  # third-party code
        raise ConfigError(f"{PROPERTY}={path}: cannot load: {type(error).__name__}: {error}") from None
    missing = [method for method in _METHODS if not callable(getattr(callback, method, None))]
    if missing:
        raise ConfigError(f"{PROPERTY}={path}: missing methods: {', '.join(missing)}")
    return callback


def has_new_limits(callback: ClientQuotaCallback, cluster: Cluster) -> bool:
    """Pass topics and leaders to a callback; return whether limits have changed."""
    try:
        return bool(callback.update_cluster_metadata(cluster))
    except Exception as error:  # third-party code
        extra = {"method": "update_cluster_metadata", "error": f"{type(error).__name__}: {error}"}
        log.error("quota callback failed, limits unchanged", extra=extra)
        return False


def close(callback: ClientQuotaCallback) -> None:
    try:
        callback.close()
    except Exception as error:  # third-party code
        extra = {"method": "close", "error": f"{type(error).__name__}: {error}"}
        log.error("quota callback failed", extra=extra)


_METHODS = [name for name in vars(ClientQuotaCallback) if not name.startswith("_")]


class CallbackRules:
    """The `QuotaRules` of one kind of quota, backed by a callback."""

    is_fixed = False

    def __init__(self, callback: ClientQuotaCallback, kind: str, default: QuotaTable) -> None:
        self._callback = callback
        self._type = ClientQuotaType(kind)
        self._default = default  # the configured quotas, which apply while the callback fails
        self._tags: dict[Bucket, dict[str, str]] = {}
        self._failing: set[str] = set()

    def __bool__(self) -> bool:
        return True

    def set(self, entity: QuotaEntity, bound: float | None) -> None:
        self._default.set(entity, bound)
        if bound is None:
            self._call("remove_quota", lambda: self._callback.remove_quota(self._type, entity), lambda: None)
        else:
            self._call("update_quota", lambda: self._callback.update_quota(self._type, entity, bound), lambda: None)

    def bucket(self, user: str, client_id: str) -> Bucket:
        def new_bucket() -> Bucket:
            tags = dict(self._callback.quota_metric_tags(self._type, user, client_id))
            if not all(isinstance(part, str) for pair in tags.items() for part in pair):
                raise TypeError(f"quota_metric_tags: expected strings, got {tags!r}")
            bucket = _bucket(tags)
            self._tags[bucket] = tags
            return bucket

        return self._call("quota_metric_tags", new_bucket, lambda: self._default.bucket(user, client_id))

    def limit(self, bucket: Bucket) -> float | None:
        tags = self._tags.get(bucket)
        if tags is None:  # quota_metric_tags failed, so the default made this bucket
            return self._default.limit(bucket)

        def new_limit() -> float | None:
            limit = self._callback.quota_limit(self._type, tags)
            if limit is not None and not (isfinite(limit) and limit > 0):
                raise ValueError(f"quota_limit: expected a finite number above 0, got {limit!r}")
            return None if limit is None else float(limit)

        return self._call("quota_limit", new_limit, lambda: self._default.limit(bucket))

    def have_changed(self) -> bool:
        return self._call(
            "quota_reset_required", lambda: bool(self._callback.quota_reset_required(self._type)), lambda: False
        )

    def holding(self, bucket: Bucket) -> QuotaEntity | None:
        return None

    def candidates(self, user: str, client_id: str) -> list[tuple[QuotaEntity, float | None]]:
        return self._default.candidates(user, client_id)

    def why(self, user: str, client_id: str) -> str:
        tags = ", ".join(
            f"{tag} {value}" for tag, value in sorted(self._tags.get(self.bucket(user, client_id), {}).items())
        )
        return f"{PROPERTY} counts the client under {tags or 'no tags'} and sets the limit"

    def _call(self, method: str, call: Callable[[], _T], default: Callable[[], _T]) -> _T:
        try:
            result = call()
        except Exception as error:  # third-party code must not fail a request
            if method not in self._failing:
                self._failing.add(method)
                extra = {"method": method, "kind": self._type.value, "error": f"{type(error).__name__}: {error}"}
                log.error("quota callback failed, using the configured quotas", extra=extra)
            return default()
        self._failing.discard(method)
        return result


def _bucket(tags: Mapping[str, str]) -> Bucket:
    """Return the tags as metrics show them: the user; the client id followed by all other tags."""
    others = ",".join(f"{tag}={tags[tag]}" for tag in sorted(tags) if tag not in (_USER, _CLIENT_ID))
    client_id = ",".join(filter(None, (tags.get(_CLIENT_ID, ""), others)))
    return tags.get(_USER) or None, client_id or None
