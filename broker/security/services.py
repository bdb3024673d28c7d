"""The parts of the broker and of a connection that SASL uses. Imported by type checkers only."""

from random import Random  # noqa: TID251  (type only)
from typing import Protocol

from sluice.broker.requests.channel import Channel
from sluice.broker.requests.context import Outcome, RequestContext, RequestHandler
from sluice.broker.requests.route import ApiRoute
from sluice.clock import Clock
from sluice.config.broker_config import Config
from sluice.protocol.message import Message
from sluice.purgatory.scheduler import Scheduler

from .sasl.scram_credentials import ScramCredentials


class SaslExchange(RequestHandler, Protocol):
    def route(self, api_and_version: int) -> ApiRoute | None: ...
    def respond(self, ctx: RequestContext, outcome: Message | Outcome) -> None: ...


class SaslHost(Protocol):
    @property
    def config(self) -> Config: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def random(self) -> Random: ...
    @property
    def scheduler(self) -> Scheduler: ...
    @property
    def exchange(self) -> SaslExchange: ...
    @property
    def scram_credentials(self) -> ScramCredentials: ...


class SaslConnection(Channel, Protocol):
    @property
    def ctx(self) -> RequestContext: ...
    def set_request_handler(self, handler: RequestHandler) -> None: ...
    def limit_frames(self, max_bytes: int, name: str) -> None: ...
