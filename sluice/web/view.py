"""The view of one viewer, from the query of `/api/v1/stream`."""

from typing import Annotated

from msgspec import Meta, Struct

from sluice.broker.admin.resources.journal import Filters
from sluice.broker.journal.reader import EventFilter, parse_event_filter

from .clients import Sort

_MOST_CLIENTS = 100
_MOST_PAGES = 100_000


class View(Struct, frozen=True):
    search: str = ""
    sort: Sort = "activity"
    page: int = 0
    size: int = 25
    connections: bool = False
    journal: bool = False
    event_filter: EventFilter = parse_event_filter({})


class ViewQuery(Filters):
    """The query parameters of a view.

    search: text that the client id or user of clients and connections contains
    sort: order of the clients
    page: page of clients, from 0
    size: clients per page
    connections: whether to include connections
    journal: whether to include the journal events that match the filters
    """

    search: str = ""
    sort: Sort = "activity"
    page: Annotated[int, Meta(ge=0, le=_MOST_PAGES)] = 0
    size: Annotated[int, Meta(ge=1, le=_MOST_CLIENTS)] = 25
    connections: bool = False
    journal: bool = False

    @property
    def view(self) -> View:
        """The view; raises ArgumentError for a filter that can match no event."""
        return View(self.search, self.sort, self.page, self.size, self.connections, self.journal, self.event_filter)
