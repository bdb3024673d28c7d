"""Quotas by a class of one's own: the plug-in point of Kafka's `ClientQuotaCallback` (KIP-257).

`client.quota.callback.class` names a class by its dotted path. It decides who is counted together, by tags, and which
limit holds for tags; what is set by AlterClientQuotas it is told, and may use or not. Names are Kafka's, written as
Python's are. While it fails, the quotas that are set hold as if there were no such class; that is logged once, until
it works again. It is called on the broker's one thread: a class that blocks there blocks everything.
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
    """What is counted; the values are the kinds of the managers."""

    PRODUCE = "Produce"
    FETCH = "Fetch"
    REQUEST = "Request"
    CONTROLLER_MUTATION = "ControllerMutation"


# Topic -> the node ids that lead its partitions, by index; -1: none does.
Cluster = Mapping[str, tuple[int, ...]]


class ClientQuotaCallback(Protocol):
    """What the class has to have. It is made without arguments."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """Told once, before all else: the broker's properties."""

    def quota_metric_tags(self, quota_type: ClientQuotaType, principal: str, client_id: str) -> Mapping[str, str]:
        """The tags under which a client is counted; all with the same tags share one limit. Asked for each request."""

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        """The limit per second of such tags, more than 0; None: no limit."""

    def update_quota(self, quota_type: ClientQuotaType, quota_entity: QuotaEntity, new_value: float) -> None:
        """Told when a quota is set."""

    def remove_quota(self, quota_type: ClientQuotaType, quota_entity: QuotaEntity) -> None:
        """Told when one is removed."""

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        """Whether limits may have changed since this was asked last. Asked for each request."""

    def update_cluster_metadata(self, cluster: Cluster) -> bool:
        """Told when topics, partitions or leaders change; whether limits have changed with that."""

    def close(self) -> None:
        """Told once, at the end."""


def load_callback(path: str, configs: Mapping[str, str]) -> ClientQuotaCallback:
    """An instance of the class that `path` names, configured. Raises ConfigError, a line that says what is wrong."""
    module, _, name = path.rpartition(".")
    try:
        callback: ClientQuotaCallback = getattr(import_module(module), name)()
        callback.configure(configs)
    except Exception as error:  # whatever the module or the class does when it is loaded
        raise ConfigError(f"{PROPERTY}={path}: cannot be used: {type(error).__name__}: {error}") from None
    missing = [method for method in _METHODS if not callable(getattr(callback, method, None))]
    if missing:
        raise ConfigError(f"{PROPERTY}={path}: has no {', no '.join(missing)}")
    return callback


def has_new_limits(callback: ClientQuotaCallback, cluster: Cluster) -> bool:
    """Tells a callback of topics and leaders; whether limits have changed with that."""
    try:
        return bool(callback.update_cluster_metadata(cluster))
    except Exception as error:  # as below
        extra = {"method": "update_cluster_metadata", "error": f"{type(error).__name__}: {error}"}
        log.error("quota callback failed, limits stay", extra=extra)
        return False


def close(callback: ClientQuotaCallback) -> None:
    """Tells a callback that it is not asked any more."""
    try:
        callback.close()
    except Exception as error:  # as below
        extra = {"method": "close", "error": f"{type(error).__name__}: {error}"}
        log.error("quota callback failed", extra=extra)


_METHODS = [name for name in vars(ClientQuotaCallback) if not name.startswith("_")]


class CallbackRules:
    """The rules of one kind of quota, as a callback has them. See `QuotaRules`."""

    is_fixed = False

    def __init__(self, callback: ClientQuotaCallback, kind: str, default: QuotaTable) -> None:
        self._callback = callback
        self._type = ClientQuotaType(kind)
        self._default = default  # has what is set, and holds while the callback fails
        self._tags: dict[Bucket, dict[str, str]] = {}
        self._failing: set[str] = set()

    def __bool__(self) -> bool:
        return True

    def set(self, entity: QuotaEntity, bound: float | None) -> None:
        self._default.set(entity, bound)
        if bound is None:
            self._ask("remove_quota", lambda: self._callback.remove_quota(self._type, entity), lambda: None)
        else:
            self._ask("update_quota", lambda: self._callback.update_quota(self._type, entity, bound), lambda: None)

    def bucket(self, user: str, client_id: str) -> Bucket:
        def ask() -> Bucket:
            tags = dict(self._callback.quota_metric_tags(self._type, user, client_id))
            if not all(isinstance(part, str) for pair in tags.items() for part in pair):
                raise TypeError(f"tags must be strings, not {tags!r}")
            bucket = _bucket(tags)
            self._tags[bucket] = tags
            return bucket

        return self._ask("quota_metric_tags", ask, lambda: self._default.bucket(user, client_id))

    def limit(self, bucket: Bucket) -> float | None:
        tags = self._tags.get(bucket)
        if tags is None:  # the bucket of a client for which there were no tags
            return self._default.limit(bucket)

        def ask() -> float | None:
            limit = self._callback.quota_limit(self._type, tags)
            if limit is not None and not (isfinite(limit) and limit > 0):
                raise ValueError(f"a limit must be more than 0 and finite, not {limit!r}")
            return None if limit is None else float(limit)

        return self._ask("quota_limit", ask, lambda: self._default.limit(bucket))

    def have_changed(self) -> bool:
        return self._ask(
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
        return f"{PROPERTY} counts the client under {tags or 'no tags'}, and decides the limit"

    def _ask(self, method: str, ask: Callable[[], _T], default: Callable[[], _T]) -> _T:
        try:
            answer = ask()
        except Exception as error:  # it is somebody else's: whatever it does must not end a request
            if method not in self._failing:
                self._failing.add(method)
                extra = {"method": method, "kind": self._type.value, "error": f"{type(error).__name__}: {error}"}
                log.error("quota callback failed, the quotas that are set hold", extra=extra)
            return default()
        self._failing.discard(method)
        return answer


def _bucket(tags: Mapping[str, str]) -> Bucket:
    """What metrics show of the tags: the user, and the client id with whatever other tags there are."""
    others = ",".join(f"{tag}={tags[tag]}" for tag in sorted(tags) if tag not in (_USER, _CLIENT_ID))
    client_id = ",".join(filter(None, (tags.get(_CLIENT_ID, ""), others)))
    return tags.get(_USER) or None, client_id or None
