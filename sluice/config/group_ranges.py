"""Checks of group properties against each other, as in Kafka's GroupCoordinatorConfig and ShareGroupConfig."""

from collections.abc import Iterator
from typing import NamedTuple

from .value_types import Values


class _Range(NamedTuple):
    name: str
    least: str | None
    most: str | None


def _between(group_type: str, *names: str) -> Iterator[_Range]:
    prefix = f"group.{group_type}"
    for name in names:
        yield _Range(f"{prefix}.{name}", f"{prefix}.min.{name}", f"{prefix}.max.{name}")


_OF_EACH_TYPE = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
_OF_RECORDS = ("record.lock.duration.ms", "delivery.count.limit", "partition.max.record.locks")
_RANGES = (
    *_between("consumer", *_OF_EACH_TYPE),
    *_between("share", *_OF_EACH_TYPE, *_OF_RECORDS),
    *_between("streams", *_OF_EACH_TYPE),
    _Range("group.streams.num.standby.replicas", None, "group.streams.max.standby.replicas"),
    _Range("group.streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms", None),
    _Range("group.streams.num.warmup.replicas", None, "group.streams.max.warmup.replicas"),
    _Range("group.share.max.share.sessions", "group.share.max.size", None),
)


def group_problem(values: Values) -> tuple[str, str] | None:
    """Return the first property that conflicts with another, and the accepted values."""
    for name, least, most in _RANGES:
        low = None if least is None else values.integer(least)
        high = None if most is None else values.integer(most)
        if least is not None and most is not None and low is not None and high is not None and low > high:
            return most, f"at least {least} ({low})"
        value = values.integer(name)
        if low is not None and value < low:
            return name, f"at least {least} ({low})"
        if high is not None and value > high:
            return name, f"at most {most} ({high})"
    for group_type in ("consumer", "share", "streams"):
        heartbeat, session = f"group.{group_type}.heartbeat.interval.ms", f"group.{group_type}.session.timeout.ms"
        if values.integer(heartbeat) >= values.integer(session):
            return heartbeat, f"less than {session} ({values.integer(session)})"
    return None
