"""The fields of a rule besides its action: the requests, connections or brokers that it applies to, and how often."""

from typing import Annotated

import msgspec
from msgspec import Meta

from .values import Duration


class Conditions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    id: Annotated[str | None, Meta(description="name of the rule; default: fault-1, fault-2, ...")] = None

    # Conditions
    broker: Annotated[int | list[int] | None, Meta(description="node id, or several")] = None
    api: Annotated[str | list[str] | None, Meta(description="API name such as Produce, or several")] = None
    version: Annotated[str | int | None, Meta(description="API version: 9, 5-9, -3, 9-")] = None
    client_id: Annotated[str | None, Meta(description="pattern with * and ? and [abc], as for all texts here")] = None
    software_name: Annotated[str | None, Meta(description="from ApiVersions, such as apache-kafka-java")] = None
    software_version: Annotated[str | None, Meta(description="from ApiVersions")] = None
    principal: Annotated[str | None, Meta(description="authenticated principal, such as User:alice")] = None
    listener: Annotated[str | None, Meta(description="name of the connection's listener")] = None
    topic: Annotated[str | None, Meta(description="topic in the request")] = None
    partition: Annotated[int | list[int] | None, Meta(description="partition in the request, or several")] = None
    group: Annotated[str | None, Meta(description="group in the request")] = None
    transactional_id: Annotated[str | None, Meta(description="transactional id in the request")] = None
    connection_older_than: Annotated[Duration | None, Meta(description="minimum age of the connection")] = None
    connection_younger_than: Annotated[Duration | None, Meta(description="maximum age of the connection")] = None
    request: Annotated[int | None, Meta(description="only the nth matching request of each connection")] = None
    after: Annotated[Duration | None, Meta(description="start, since the rule was added")] = None
    until: Annotated[Duration | None, Meta(description="end, since the rule was added")] = None
    probability: Annotated[float | None, Meta(description="probability of hitting a match")] = None
    seed: Annotated[int | None, Meta(description="random seed; default: from the cluster's seed and the id")] = None

    # Frequency: at most one of these. Without any, the rule hits every match.
    times: Annotated[int | None, Meta(description="number of matches to hit, from the first")] = None
    during: Annotated[Duration | None, Meta(description="duration from the first match")] = None
    on: Annotated[list[int] | None, Meta(description="numbers of the matches to hit; the first is 1")] = None
    schedule: Annotated[str | None, Meta(description="phases, such as '3 fail, 2 pass, repeat'")] = None
