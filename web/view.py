"""What one viewer wants to see: the query of `/api/v1/stream`."""

from typing import Annotated

from msgspec import Meta, Struct

from sluice.broker.admin.resources.journal import Filters
from sluice.broker.journal.reader import EventFilter, parse_event_filter

from .clients import Sort

_MOST_CLIENTS = 100
_MOST_PAGES = 100_000


class View(Struct, frozen=True):
    """What one viewer requests."""

    search: str = ""
    sort: Sort = "activity"
    page: int = 0
    size: int = 25
    connections: bool = False
    journal: bool = False
    event_filter: EventFilter = parse_event_filter({})


class ViewQuery(Filters):
    """The query parameters of a view.

    search: of clients and connections: what their client id or user has
    sort: of the clients, of which so many make a page: the first is 0
    connections: with the connections
    journal: with the journal, as far as the filters let it through
    """

    search: str = ""
    sort: Sort = "activity"
    page: Annotated[int, Meta(ge=0, le=_MOST_PAGES)] = 0
    size: Annotated[int, Meta(ge=1, le=_MOST_CLIENTS)] = 25
    connections: bool = False
    journal: bool = False

    @property
    def view(self) -> View:
        """Raises ValueError for a filter that lets nothing through, ever."""
        return View(self.search, self.sort, self.page, self.size, self.connections, self.journal, self.event_filter)
