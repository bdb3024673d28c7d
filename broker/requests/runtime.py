"""What runs the requests of all brokers of a process: clock, randomness, timers, queues and the worker."""

from random import Random  # noqa: TID251  (type only)

from sluice.clock import Clock
from sluice.config.broker_config import Config
from sluice.purgatory.scheduler import Scheduler
from sluice.purgatory.timer import Timer

from .action_queue import ActionQueue
from .long_request import LongRequests
from .turn_queue import TurnQueue
from .worker import Worker


class Runtime:
    def __init__(self, config: Config, clock: Clock, random: Random, worker: Worker | None = None) -> None:
        """Without a `worker`, its work is done at once."""
        self.config = config
        self.clock = clock
        self.random = random
        self.actions = ActionQueue()
        self.turns = TurnQueue(clock)
        self.worker = Worker() if worker is None else worker
        self.long_requests = LongRequests(self.turns, config.integer("num.io.threads"))
        self.timer = Timer(clock)
        self.scheduler = Scheduler(self.timer)

    def close(self) -> None:
        self.long_requests.close()
        self.timer.close()
        self.worker.close()
