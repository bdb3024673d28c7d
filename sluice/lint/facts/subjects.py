"""All facts of one client, and of one group: compositions of the domains."""

from collections import Counter
from collections.abc import Iterable

from sluice.journal_events import ClientEvent, GroupState, Request
from sluice.lint.clients import ClientKey

from .committing import Committing
from .connections import Connections
from .deliveries import Deliveries
from .domain import EVERY_REQUEST, Dispatch, Domain, Handlers
from .fetching import Fetching
from .joining import Joining
from .measures.examples import Examples
from .membership import Membership
from .producing import Producing
from .retries import Retries
from .throttles import Throttles
from .transactions import Transactions


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


class ClientFacts:
    """The facts of one client, which is identified by its client id, software name and version."""

    def __init__(self, key: ClientKey) -> None:
        self.key = key
        self.traffic = Traffic()
        self.producing, self.connections = Producing(), Connections()
        self.deliveries = Deliveries()
        self.retries = Retries(self.deliveries)  # after Deliveries, which recognizes batches
        self.throttles = Throttles()
        self.fetching = Fetching()
        self.committing = Committing(self.fetching)
        self.joining = Joining()  # after Fetching, whose topics it names
        self.transactions = Transactions()
        self.domains: tuple[Domain, ...] = (
            *(self.traffic, self.producing, self.connections),
            *(self.deliveries, self.retries, self.throttles),
            *(self.fetching, self.committing, self.joining, self.transactions),
        )
        self.dispatch = Dispatch(self.domains)

    def take(self, events: Iterable[ClientEvent]) -> None:
        """Add events, in the order of the journal."""
        dispatch = self.dispatch
        for event in events:
            name = event.api if isinstance(event, Request) else str(event.__struct_config__.tag)
            for handle in dispatch[name]:
                handle(event)


_MOST_CLIENTS = 16


class GroupFacts:
    """The facts of one group, from the requests of all its clients in the order of the journal, and its states.

    clients: up to 16 clients that sent requests with its group id
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.clients: dict[ClientKey, None] = {}
        self.membership = Membership(group_id)
        self.domains: tuple[Domain, ...] = (self.membership,)
        self.dispatch = Dispatch(self.domains)

    def take(self, events: Iterable[Request | GroupState]) -> None:
        """Add events, in the order of the journal."""
        for event in events:
            for handle in self.dispatch[event.api if isinstance(event, Request) else "group-state"]:
                handle(event)
            if isinstance(event, Request) and len(self.clients) < _MOST_CLIENTS:
                self.clients[ClientKey(event.client_id, event.software_name, event.software_version)] = None
