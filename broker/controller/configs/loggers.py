"""Levels of the broker's loggers (KIP-412, RuntimeLoggerManager), with Kafka's level names.

The loggers are those of this project and "root", from which others inherit their level.
"""

import logging
from collections.abc import Mapping

from sluice.protocol.errors import ErrorCode

from .broker_configs import wrong_node
from .resource import ApiError, Change, Operation

ROOT = "root"
LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


class Loggers:
    def __init__(self, node_id: int) -> None:
        self._node_id = node_id

    def describe(self, name: str) -> dict[str, str] | ApiError:
        if not name:
            return ApiError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        wrong = wrong_node(name, self._node_id, "Broker id", "Unexpected broker id, expected {} but received {}")
        return wrong or {name: _level_name(logger) for name, logger in _loggers().items()}

    def alter(self, name: str, changes: Mapping[str, Change], *, validate_only: bool) -> ApiError | None:
        wrong = wrong_node(name, self._node_id, "Node id", "Unexpected node id. Expected {}, but received {}")
        problems = (_validate(logger, change) for logger, change in changes.items())
        error = wrong or next(filter(None, problems), None)
        if error is None and not validate_only:
            loggers = _loggers()
            for logger, change in changes.items():
                removed = change.operation == Operation.DELETE
                loggers[logger].setLevel(logging.NOTSET if removed else LEVELS[change.value or ""])
        return error


def _loggers() -> dict[str, logging.Logger]:
    known = sorted(logging.Logger.manager.loggerDict)
    return {ROOT: logging.getLogger()} | {name: logging.getLogger(name) for name in known if name.startswith("sluice")}


def _level_name(logger: logging.Logger) -> str:
    level = logger.getEffectiveLevel()
    return max((number, name) for name, number in LEVELS.items() if number <= max(level, LEVELS["TRACE"]))[1]


def _validate(logger: str, change: Change) -> ApiError | None:
    if change.operation not in (Operation.SET, Operation.DELETE):
        is_known = change.operation in frozenset(Operation)
        operation = (
            f"{Operation(change.operation).name} operation"
            if is_known
            else f"Unknown operation type {change.operation}"
        )
        message = f"{operation} is not allowed for the BROKER_LOGGER resource"
        return ApiError(ErrorCode.INVALID_REQUEST, message)
    if logger not in _loggers():
        return ApiError(ErrorCode.INVALID_CONFIG, f"Logger {logger} does not exist!")
    if change.operation == Operation.DELETE:
        removed = "Removing the log level of the root logger is not allowed"
        return ApiError(ErrorCode.INVALID_REQUEST, removed) if logger == ROOT else None
    if change.value in LEVELS:
        return None
    message = (
        f"Cannot set the log level of {logger} to {change.value} as it is not a supported log level. "
        f"Valid log levels are {', '.join(sorted(LEVELS))}"
    )
    return ApiError(ErrorCode.INVALID_CONFIG, message)
