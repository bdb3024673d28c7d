"""The operations of the admin port: rows of a table, each with its parameters, body, response and handler.

    Operation.of("POST", "/api/v1/brokers/{node_id}/stop", "Stops a broker.", stop,
                 params=BrokerParams, body=Stop, answer=BrokerShown, errors=(404, 409))

Both the routes and the OpenAPI document (openapi.py) are made from these rows, so they always agree. Parameters and
bodies are decoded by the types in the row before the handler runs. An invalid one gets a response with one line that
names the place and what is accepted.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar, get_args, get_origin
from urllib.parse import parse_qs

import msgspec
from starlette.responses import Response

from sluice.broker.controller.errors import UnknownResourceError
from sluice.broker.journal.reader import JournalReader
from sluice.broker.scenarios.runs import Runs
from sluice.broker.server.cluster_server import ClusterServer
from sluice.broker.server.metrics import registry
from sluice.errors import ConfigError, SluiceError
from sluice.text.typed_decoding import DecodeError, read, read_texts

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from starlette.requests import Request
    from starlette.routing import BaseRoute

JSON = "application/json"
SAFE = frozenset({"GET"})  # methods that change nothing
# A page of another site can make a browser send a form, but neither this header nor a JSON body: for those the browser
# sends a preflight request first, which the broker does not accept.
SENDER = "x-sluice-request"
ACCEPT = "accept"  # a parameter of this name has the value of the header
_LARGEST_BODY = 64 * 1024

_Params = TypeVar("_Params", bound=msgspec.Struct)
_Body = TypeVar("_Body")
_Answer = TypeVar("_Answer")


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """No parameters, or no body."""


class Problem(msgspec.Struct, omit_defaults=True):
    """Why a request is refused.

    error: in one line
    path: where in the body the mistake is, such as quotas.producer_byte_rate; left out where it is at no one place
    """

    error: str
    path: str = ""


class RefusedError(Exception):
    """A request that is rejected with this HTTP status."""

    def __init__(self, status: int, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.status = status
        self.path = path


class AdminContext:
    """What handlers of operations use: the cluster, its journal and metrics, and the runs of scenarios."""

    def __init__(self, server: ClusterServer, operations: "Sequence[Operation]") -> None:
        self.server = server
        self.operations = operations

    @cached_property
    def journal(self) -> JournalReader | None:
        """The journal of the cluster; None if it has none."""
        cluster = self.server.cluster
        return None if cluster.journal is None else JournalReader(cluster.journal, cluster.clock)

    @cached_property
    def metrics(self) -> "CollectorRegistry":
        """The metrics of all brokers."""
        return registry(self.server)

    @cached_property
    def runs(self) -> Runs:
        """The runs of scenarios."""
        return Runs(self.server)


class Operation(NamedTuple):
    """One row: `params` are the parameters of path and query, `bodies` the JSON bodies that are accepted."""

    method: str
    path: str
    summary: str
    act: Callable[[AdminContext, Mapping[str, str | list[str]], object], Awaitable[object]]
    params: type[msgspec.Struct]
    bodies: tuple[type, ...]  # as documented: any of these
    answer: object  # the type of the JSON response; None if it is never JSON
    errors: tuple[int, ...]  # besides those of any request
    media: Mapping[str, object]  # responses that are not JSON: content type -> type

    @classmethod
    def of(
        cls,
        method: str,
        path: str,
        summary: str,
        handle: Callable[[AdminContext, _Params, _Body], Awaitable[_Answer | Response]],
        *,
        params: type[_Params],
        body: type[_Body],
        answer: type[_Answer] | None,
        errors: tuple[int, ...] = (),
        documented_as: tuple[type, ...] | None = None,
        media: Mapping[str, object] | None = None,
    ) -> "Operation":
        """Return a row whose types match `handle`. `documented_as` are the types of a body that `handle` decodes."""

        async def act(context: AdminContext, texts: Mapping[str, str | list[str]], document: object) -> object:
            return await handle(context, _parameters(texts, params), read(document, body))

        # msgspec analyses a type on first use, which is not safe in two threads at once, each with a broker. An import
        # runs in one thread.
        for one in (params, body):
            msgspec.json.Decoder(one)
        return cls(method, path, summary, act, params, documented_as or (body,), answer, errors, media or {})

    @property
    def has_body(self) -> bool:
        """Whether a body is read."""
        return self.bodies != (Nothing,)

    @property
    def in_path(self) -> list[str]:
        """The names of the path parameters."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    async def respond(self, context: AdminContext, request: "Request") -> Response:
        """Return the response to a request, or an error response."""
        try:
            answer = await self._answer(context, request)
        except RefusedError as error:
            return problem(error.status, str(error), error.path)
        except UnknownResourceError as error:
            return problem(404, str(error))
        except DecodeError as error:
            return problem(400, str(error), error.path)
        except (ConfigError, ValueError) as error:
            return problem(400, str(error))
        except RecursionError:
            return problem(400, "the body is nested too deeply")
        except SluiceError as error:  # for example a port that is in use
            return problem(409, str(error))
        return answer

    async def _answer(self, context: AdminContext, request: "Request") -> Response:
        document: object = {}
        if self.method not in SAFE:
            body = await _body_of(request)
            _check_sender(request, body)
            document = _document(body)
        answer = await self.act(context, self._texts(request), document)
        return answer if isinstance(answer, Response) else json_response(answer)

    def _texts(self, request: "Request") -> dict[str, str | list[str]]:
        """Return the parameters as text. Of a repeated one the last counts, unless it is a list."""
        given = parse_qs(request.scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)
        fields = {one.encode_name: one for one in msgspec.structs.fields(self.params)}
        accepted = [name for name in fields if name not in (ACCEPT, *self.in_path)]
        unknown = next((name for name in given if name not in accepted), None)
        if unknown is not None:
            there_are = f"accepted are {', '.join(accepted)}" if accepted else "none are accepted"
            raise RefusedError(400, f"{unknown}: there is no such parameter; {there_are}")
        query = {name: values if _is_list(fields[name].type) else values[-1] for name, values in given.items()}
        headers = {ACCEPT: request.headers.get(ACCEPT, "")} if ACCEPT in fields else {}
        return {**query, **headers, **request.path_params}


class AdminExtension(NamedTuple):
    """Operations and routes of a layer above the broker, such as the web page and its files."""

    operations: Sequence[Operation]
    routes: "Sequence[BaseRoute]"


def json_response(answer: object, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(msgspec.json.encode(answer), status, media_type=JSON)


def problem(status: int, error: str, path: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """Return an error response."""
    return Response(msgspec.json.encode(Problem(error, path)), status, headers=headers, media_type=JSON)


def _parameters(texts: Mapping[str, str | list[str]], params: type[_Params]) -> _Params:
    try:
        return read_texts(texts, params)
    except DecodeError as error:
        raise RefusedError(400, str(error)) from None  # its path is not one in the body


async def _body_of(request: "Request") -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_BODY:
            raise RefusedError(400, f"the body must have at most {_LARGEST_BODY} bytes")
    return body


def _check_sender(request: "Request", body: bytes) -> None:
    """Reject a request that a browser may have sent for a page of another site."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == JSON:
        return
    if body:
        raise RefusedError(415, f"content-type {content_type or '(none)'}: the body must be sent as {JSON}")
    if request.headers.get(SENDER) != "1":
        raise RefusedError(403, "what changes something is sent with the header X-Sluice-Request: 1, or as JSON")


def _document(body: bytes) -> object:
    if not body:
        return {}
    try:
        found: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(400, f"the body must be JSON: {error}") from None
    return found


def _is_list(kind: object) -> bool:
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_origin(plain) is list
