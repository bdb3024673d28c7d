"""All facts of one group: a composition of the domains."""

from collections.abc import Iterable

from sluice.journal_events import GroupState, Request
from sluice.lint.clients import ClientKey

from .domain import Dispatch, Domain
from .membership import Membership

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
