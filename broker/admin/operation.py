"""The operations of the admin port: a table with their parameters, body, response and handler.

    Operation.of("POST", "/api/v1/brokers/{node_id}/stop", "Stop a broker.", stop, errors=(404, 409))

The routes and the OpenAPI document (openapi.py) are generated from this table. Parameters and bodies are decoded by
their types, those of the handler, before it runs; an error response names the invalid place and what is accepted.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from types import UnionType
from typing import Annotated, NamedTuple, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qs

import msgspec
from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from sluice.broker.journal.reader import JournalReader
from sluice.broker.scenarios.run import Runs
from sluice.broker.server.cluster_server import ClusterServer
from sluice.broker.server.metrics import registry
from sluice.errors import ConfigError, SluiceError, UnknownResourceError
from sluice.text.typed_decoding import DecodeError, read, read_texts

JSON = "application/json"
SAFE = frozenset({"GET"})
# Pages of other sites can send neither this header nor a JSON body.
SENDER = "x-sluice-request"
ACCEPT = "accept"  # a parameter of this name has the value of the header
_LARGEST_BODY = 64 * 1024

_Params = TypeVar("_Params", bound=msgspec.Struct)
_Body = TypeVar("_Body")


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """No parameters, or no body."""


class Problem(msgspec.Struct, omit_defaults=True):
    """The reason for an error response.

    error: message of one line
    path: place in the body, such as quotas.producer_byte_rate; absent if the error has no single place
    """

    error: str
    path: str = ""


class RefusedError(Exception):
    """An error response with this HTTP status."""

    def __init__(self, status: int, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.status = status
        self.path = path


class AdminContext:
    def __init__(self, server: ClusterServer, operations: "Sequence[Operation]") -> None:
        self.server = server
        self.operations = operations

    @cached_property
    def journal(self) -> JournalReader | None:
        cluster = self.server.cluster
        return None if cluster.journal is None else JournalReader(cluster.journal, cluster.runtime.clock)

    @cached_property
    def metrics(self) -> CollectorRegistry:
        return registry(self.server)

    @cached_property
    def runs(self) -> Runs:
        return Runs(self.server)


class Operation(NamedTuple):
    """One operation, with the types of its path and query parameters (`params`) and of its JSON body."""

    method: str
    path: str
    summary: str
    act: Callable[[AdminContext, Mapping[str, str | list[str]], object], Awaitable[object]]
    params: type[msgspec.Struct]
    bodies: tuple[type, ...]  # accepted types
    answer: object
    errors: tuple[int, ...]  # besides the ones of all operations
    media: Mapping[str, object]

    @classmethod
    def of(
        cls,
        method: str,
        path: str,
        summary: str,
        handle: Callable[[AdminContext, _Params, _Body], Awaitable[object]],
        *,
        errors: tuple[int, ...] = (),
        documented_as: tuple[type, ...] | None = None,
        media: Mapping[str, object] | None = None,
    ) -> "Operation":
        """Return an operation typed as `handle`; `documented_as` are the types of a body that it decodes itself."""
        hints = get_type_hints(handle)
        params, body = hints["params"], hints["body"]
        answer = _answer_type(hints["return"])

        async def act(context: AdminContext, texts: Mapping[str, str | list[str]], document: object) -> object:
            return await handle(context, _parameters(texts, params), read(document, body))

        # msgspec analyses a type on first use, which is not thread-safe; imports are serialized.
        for one in (params, body):
            msgspec.json.Decoder(one)
        return cls(method, path, summary, act, params, documented_as or (body,), answer, errors, media or {})

    @property
    def has_body(self) -> bool:
        return self.bodies != (Nothing,)

    @property
    def in_path(self) -> list[str]:
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    async def respond(self, context: AdminContext, request: Request) -> Response:
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
        except SluiceError as error:
            return problem(409, str(error))
        return answer

    async def _answer(self, context: AdminContext, request: Request) -> Response:
        document: object = {}
        if self.method not in SAFE:
            body = await _body_of(request)
            _check_sender(request, body)
            document = _document(body)
        answer = await self.act(context, self._texts(request), document)
        return answer if isinstance(answer, Response) else Response(msgspec.json.encode(answer), media_type=JSON)

    def _texts(self, request: Request) -> dict[str, str | list[str]]:
        # The last value counts unless the parameter is a list.
        given = parse_qs(request.scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)
        fields = {one.encode_name: one for one in msgspec.structs.fields(self.params)}
        accepted = [name for name in fields if name not in (ACCEPT, *self.in_path)]
        unknown = next((name for name in given if name not in accepted), None)
        if unknown is not None:
            expected = ", ".join(accepted) or "no parameters"
            raise RefusedError(400, f"{unknown}: unknown parameter; expected {expected}")
        query = {name: values if _is_list(fields[name].type) else values[-1] for name, values in given.items()}
        headers = {ACCEPT: request.headers.get(ACCEPT, "")} if ACCEPT in fields else {}
        return {**query, **headers, **request.path_params}


class AdminExtension(NamedTuple):
    """Operations and routes of a layer above the broker."""

    operations: Sequence[Operation]
    routes: Sequence[BaseRoute]


def problem(status: int, error: str, path: str = "", headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(Problem(error, path)), status, headers=headers, media_type=JSON)


def _parameters(texts: Mapping[str, str | list[str]], params: type[_Params]) -> _Params:
    try:
        return read_texts(texts, params)
    except DecodeError as error:
        raise RefusedError(400, str(error)) from None  # without the path, which would refer to the body


async def _body_of(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_BODY:
            raise RefusedError(400, f"the body is too large; expected at most {_LARGEST_BODY} bytes")
    return body


def _check_sender(request: Request, body: bytes) -> None:
    """Reject a request that a page of another site may have made a browser send."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == JSON:
        return
    if body:
        raise RefusedError(415, f"content-type: expected {JSON}, got {content_type or 'none'}")
    if request.headers.get(SENDER) != "1":
        raise RefusedError(403, "missing header; send X-Sluice-Request: 1, or a JSON body")


def _document(body: bytes) -> object:
    if not body:
        return {}
    try:
        found: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RefusedError(400, f"the body is not JSON: {error}") from None
    return found


def _answer_type(returned: object) -> object:
    """Return the type of an answer that is not a `Response`; None if there is none."""
    if isinstance(returned, UnionType):
        returned = next(kind for kind in get_args(returned) if kind is not Response)
    return None if returned is Response else returned


def _is_list(kind: object) -> bool:
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_origin(plain) is list
