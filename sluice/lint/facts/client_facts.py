"""All facts of one client: a composition of the domains."""

from sluice.lint.clients import ClientKey

from .domain import Dispatch, Domain
from .traffic import Traffic


class ClientFacts:
    """The facts of one client, which is identified by its client id, software name and version."""

    def __init__(self, key: ClientKey) -> None:
        self.key = key
        self.traffic = Traffic()
        self.domains: tuple[Domain, ...] = (self.traffic,)
        self.dispatch = Dispatch(self.domains)
