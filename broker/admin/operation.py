"""What the admin port can be asked: rows of a table, each with what is given, what is answered, and what answers it.

    Operation.of("POST", "/api/v1/brokers/{node_id}/stop", "Stops a broker.", stop,
                 asked=OfBroker, body=Stop, answer=BrokerShown, errors=(404, 409))

Routes are made of these rows, and so is the OpenAPI document (openapi.py), so that neither can say what the other
does not. Parameters and bodies are read by the types in the row before anything is done; a mistake in them is answered
in one line that says where it is and what is accepted.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar, get_args, get_origin
from urllib.parse import parse_qs

import msgspec
from starlette.responses import Response

from sluice.broker.controller.errors import UnknownResourceError
from sluice.broker.journal.reader import JournalReader
from sluice.errors import ConfigError, SluiceError
from sluice.text.typed_decoding import DecodeError, read, read_texts

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from sluice.broker.scenarios.runs import Runs
    from sluice.broker.server.cluster_server import ClusterServer

JSON = "application/json"
SAFE = frozenset({"GET"})  # asks, and changes nothing
# A page on another site can have a browser send a form, but neither this header nor a body of JSON: for those the
# browser asks the broker first, which does not answer.
SENDER = "x-sluice-request"
ACCEPT = "accept"  # a parameter of this name is what the header says
_LARGEST_BODY = 64 * 1024

_Asked = TypeVar("_Asked", bound=msgspec.Struct)
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
    """A request is not answered, with this HTTP status."""

    def __init__(self, status: int, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self.status = status
        self.path = path


class AdminRoom:
    """What operations are about: a cluster, and what of it is read and run through the admin port."""

    def __init__(self, server: "ClusterServer", operations: "Sequence[Operation]") -> None:
        self.server = server
        self.operations = operations  # all that can be asked

    @cached_property
    def journal(self) -> JournalReader | None:
        """The cluster's, if it keeps one."""
        cluster = self.server.cluster
        return None if cluster.journal is None else JournalReader(cluster.journal, cluster.clock)

    @cached_property
    def metrics(self) -> "CollectorRegistry":
        """Those of all brokers."""
        from sluice.broker.server.metrics import registry

        return registry(self.server)

    @cached_property
    def runs(self) -> "Runs":
        """Of scenarios."""
        from sluice.broker.scenarios.runs import Runs  # few ever run one

        return Runs(self.server)


class Operation(NamedTuple):
    """One row. `asked` has the parameters of path and query, `body` what is sent as JSON."""

    method: str
    path: str
    summary: str
    act: Callable[[AdminRoom, Mapping[str, str | list[str]], object], Awaitable[object]]
    asked: type[msgspec.Struct]
    bodies: tuple[type, ...]  # as the document tells them: any of these
    answer: object  # the type of the JSON, None: it is never JSON
    errors: tuple[int, ...]  # beside those that any request can meet
    media: Mapping[str, object]  # other answers than JSON: content type -> type

    @classmethod
    def of(
        cls,
        method: str,
        path: str,
        summary: str,
        handle: Callable[[AdminRoom, _Asked, _Body], Awaitable[_Answer | Response]],
        *,
        asked: type[_Asked],
        body: type[_Body],
        answer: type[_Answer] | None,
        errors: tuple[int, ...] = (),
        told_as: tuple[type, ...] | None = None,
        media: Mapping[str, object] | None = None,
    ) -> "Operation":
        """A row, of which all parts fit. `told_as` describes a body that `handle` itself reads."""

        async def act(room: AdminRoom, texts: Mapping[str, str | list[str]], document: object) -> object:
            return await handle(room, _parameters(texts, asked), read(document, body))

        # msgspec finds out about a type when it is first used, and two threads that do so at once, each with a broker,
        # are one too many. A module is imported by one.
        for one in (asked, body):
            msgspec.json.Decoder(one)
        return cls(method, path, summary, act, asked, told_as or (body,), answer, errors, media or {})

    @property
    def has_body(self) -> bool:
        """Whether one is read."""
        return self.bodies != (Nothing,)

    @property
    def in_path(self) -> list[str]:
        """The names of the parameters that are in the path."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    async def respond(self, room: AdminRoom, request: "Request") -> Response:
        """The answer to a request, or why there is none."""
        try:
            answer = await self._answer(room, request)
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
        except SluiceError as error:  # a port that is in use, say
            return problem(409, str(error))
        return answer

    async def _answer(self, room: AdminRoom, request: "Request") -> Response:
        document: object = {}
        if self.method not in SAFE:
            body = await _body_of(request)
            _check_sender(request, body)
            document = _document(body)
        answer = await self.act(room, self._texts(request), document)
        return answer if isinstance(answer, Response) else json_response(answer)

    def _texts(self, request: "Request") -> dict[str, str | list[str]]:
        """The parameters: of one that comes twice the last, unless it is a list."""
        given = parse_qs(request.scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)
        fields = {one.encode_name: one for one in msgspec.structs.fields(self.asked)}
        accepted = [name for name in fields if name not in (ACCEPT, *self.in_path)]
        unknown = next((name for name in given if name not in accepted), None)
        if unknown is not None:
            there_are = f"accepted are {', '.join(accepted)}" if accepted else "none are accepted"
            raise RefusedError(400, f"{unknown}: there is no such parameter; {there_are}")
        query = {name: values if _is_list(fields[name].type) else values[-1] for name, values in given.items()}
        headers = {ACCEPT: request.headers.get(ACCEPT, "")} if ACCEPT in fields else {}
        return {**query, **headers, **request.path_params}


class Furniture(NamedTuple):
    """What is handed in from above the broker, to be served as well; routes are for what is no operation, as files."""

    operations: Sequence[Operation]
    routes: "Sequence[BaseRoute]"


def json_response(answer: object, status: int = 200) -> Response:
    """An answer as JSON."""
    return Response(msgspec.json.encode(answer), status, media_type=JSON)


def problem(status: int, error: str, path: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """An answer to a request that is refused."""
    return Response(msgspec.json.encode(Problem(error, path)), status, headers=headers, media_type=JSON)


def _parameters(texts: Mapping[str, str | list[str]], asked: type[_Asked]) -> _Asked:
    try:
        return read_texts(texts, asked)
    except DecodeError as error:
        raise RefusedError(400, str(error)) from None  # its path is none of the body


async def _body_of(request: "Request") -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_BODY:
            raise RefusedError(400, f"the body must have at most {_LARGEST_BODY} bytes")
    return body


def _check_sender(request: "Request", body: bytes) -> None:
    """Whoever sends it must be able to say what a browser lets no other site's page say."""
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
