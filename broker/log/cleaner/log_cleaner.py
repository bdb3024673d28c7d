"""Periodic compaction in small steps: Kafka's LogCleaner and CleanerThread, without a thread.

    idle      -- log.cleaner.backoff.ms has passed, and a log is due -->  cleaning
    cleaning  -- done -->  cleaning the next log, or idle if none is due: then old segments are deleted, too
    cleaning  -- unreadable records or a disk error -->  as above; that log is not tried again
    cleaning  -- the log lost segments under cleaning -->  idle

A cleaning runs for up to SLICE_MS, then frees the event loop for at least as long. A thread would not block it less.
"""

import logging
from collections.abc import Iterator

from sluice.broker.log.log_manager import LogManager
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.retention import enforce_retention
from sluice.clock import Clock
from sluice.config.broker_config import Config
from sluice.protocol.records.invalid import InvalidRecords
from sluice.purgatory.scheduler import Scheduler

from .cleaner import LogCleaning
from .offset_map import BYTES_A_KEY
from .selection import LogToClean, filthiest

SLICE_MS = 2.0
WAIT_MS = 100.0  # between checks of a flush, which may take a minute

_logger = logging.getLogger("sluice.broker")


class LogCleaner:
    def __init__(self, logs: LogManager, config: Config, clock: Clock, scheduler: Scheduler) -> None:
        self._logs = logs
        self._config = config
        self._clock = clock
        self._scheduler = scheduler
        self._cleaning: LogCleaning | None = None
        self._log: PartitionLog | None = None
        self._steps: Iterator[None] = iter(())
        self._uncleanable: set[PartitionLog] = set()

    def start(self) -> None:
        if self._log is None:
            self._begin_next()

    def _begin_next(self) -> None:
        logs = list(self._logs)
        self._uncleanable.intersection_update(logs)  # removes deleted logs
        now_ms = self._clock.wall_ms()
        chosen = filthiest([log for log in logs if log not in self._uncleanable], now_ms)
        if chosen is not None:
            self._begin(chosen, now_ms)
            self._run_slice()
            return
        for log in logs:
            if log.config.append.compacted and log not in self._uncleanable:
                enforce_retention(log, now_ms)

    def _begin(self, chosen: LogToClean, now_ms: int) -> None:
        self._log = chosen.log
        self._cleaning = LogCleaning(
            chosen.log, chosen.first_dirty_offset, chosen.first_uncleanable_offset, now_ms, self._most_keys()
        )
        self._steps = self._cleaning.steps()

    def _most_keys(self) -> int:
        config = self._config
        usable = config.integer("log.cleaner.dedupe.buffer.size") * config.number("log.cleaner.io.buffer.load.factor")
        return max(int(usable / BYTES_A_KEY), 1)

    def _run_slice(self) -> None:
        clock = self._clock
        end_ms = clock.monotonic_ms() + SLICE_MS
        cleaning, log = self._cleaning, self._log
        assert cleaning is not None
        assert log is not None
        try:
            for _ in self._steps:
                if cleaning.is_waiting:
                    self._scheduler.schedule_once(WAIT_MS, self._run_slice)
                    return
                if clock.monotonic_ms() >= end_ms:
                    self._scheduler.schedule_once(SLICE_MS, self._run_slice)
                    return
        except (InvalidRecords, OSError) as error:
            self._uncleanable.add(log)
            _logger.warning("compaction of %s disabled: %s", log.name, error)
        self._log = self._cleaning = None
        if cleaning.end_offset > log.first_dirty_offset:
            log.first_dirty_offset = cleaning.end_offset
            self._logs.save_cleaned()
        elif log not in self._uncleanable:
            return  # clean it again, but not at once
        self._begin_next()
