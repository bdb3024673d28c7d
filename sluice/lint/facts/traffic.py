"""Requests of a client: how many of each API, in which time."""

from collections import Counter

from sluice.journal_events import Request

from .domain import EVERY_REQUEST, Domain, Handlers
from .measures.examples import Examples


class Traffic(Domain):
    """The requests of a client.

    apis: number of requests by API
    failed: number of requests with an error code or without a response
    faulted: number of requests that a fault rule hit
    """

    def __init__(self) -> None:
        self.apis: Counter[str] = Counter()
        self.failed = self.faulted = 0
        self.first_ns = self.last_ns = 0
        self.examples = Examples()

    @property
    def seconds(self) -> float:
        return (self.last_ns - self.first_ns) / 1e9

    def handlers(self) -> Handlers:
        return {EVERY_REQUEST: self._request}

    def _request(self, event: Request) -> None:
        if not self.first_ns:
            self.first_ns = event.received_ns
            self.examples.note(event)
        self.last_ns = event.at_ns
        self.apis[event.api] += 1
        if event.error_codes or event.answered_ns is None:
            self.failed += 1
        if event.rule_id:
            self.faulted += 1
