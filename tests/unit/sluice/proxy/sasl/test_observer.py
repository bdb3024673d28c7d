"""The users of SASL exchanges between a client and a broker that the proxy only observes."""

import logging
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.security.sasl.mechanism import Mechanism
from sluice.broker.security.sasl.scram import ScramServerMechanism
from sluice.broker.security.sasl.scram_credentials import ScramCredentials, ScramMechanism
from sluice.proxy.sasl.observer import SaslObserver
from tests.support.sasl import ScramClient, bearer, plain, token

Tokens = list[tuple[bytes, bytes]]  # the client's and the broker's
SIGNED = token({"sub": "carol", "email": "c@x", "exp": 1}, {"alg": "RS256"}) + "c2ln"
SECRETS = ("alice-secret", "c2ln")


def scram(mechanism: ScramMechanism, user: str = "alice") -> Tokens:
    """Return the tokens of an exchange that succeeds."""
    credentials = ScramCredentials({user: "alice-secret"}, lambda size: b"s" * size)
    server: Mechanism = ScramServerMechanism(mechanism, credentials, lambda: "nonce")
    client = ScramClient(mechanism.hash_name, user, "alice-secret")
    server_first = server.evaluate(client.first)
    final = client.final(server_first)
    return [(client.first, server_first), (final, server.evaluate(final))]


class Exchange(NamedTuple):
    mechanism: str
    tokens: Tokens


PLAIN = Exchange("PLAIN", [(plain(), b"")])
BOB = Exchange("PLAIN", [(plain("bob"), b"")])
REFUSED_BEARER = Exchange("OAUTHBEARER", [(bearer(SIGNED), b'{"status":"invalid_token"}'), (b"\x01", b"")])
UNFINISHED = Exchange("SCRAM-SHA-256", scram(ScramMechanism.SCRAM_SHA_256)[:1])
SCRAM_256 = Exchange("SCRAM-SHA-256", scram(ScramMechanism.SCRAM_SHA_256))
DELEGATION_TOKEN = Exchange("SCRAM-SHA-256", [(b"n,,n=id,r=x,tokenauth=true", b"r=xy"), (b"", b"v=")])


def observe(observer: SaslObserver, exchange: Exchange) -> str | None:
    """Return the last user."""
    observer.handshake(exchange.mechanism)
    user = None
    for client, broker in exchange.tokens:
        assert user is None
        observer.client_token(client)
        user = observer.broker_token(broker)
    return user


def observer(claim: str = "sub") -> SaslObserver:
    return SaslObserver(claim, set())


@pytest.mark.parametrize(
    ("exchange", "user"),
    [
        pytest.param(PLAIN, "alice", id="PLAIN"),
        pytest.param(Exchange("PLAIN", [(plain("älice", "pässword"), b"")]), "älice", id="PLAIN, not ASCII"),
        pytest.param(
            Exchange("PLAIN", [(plain(authorization_id="other"), b"")]), "alice", id="PLAIN, authorization id"
        ),
        pytest.param(SCRAM_256, "alice", id="SCRAM-SHA-256"),
        pytest.param(
            Exchange("SCRAM-SHA-512", scram(ScramMechanism.SCRAM_SHA_512, "a=b,c")),
            "a=b,c",
            id="SCRAM-SHA-512, escaped",
        ),
        pytest.param(Exchange("OAUTHBEARER", [(bearer(SIGNED), b"")]), "carol", id="OAUTHBEARER, signed"),
        pytest.param(
            Exchange("OAUTHBEARER", [(bearer(token({"sub": "eve"})), b"")]), "eve", id="OAUTHBEARER, unsecured"
        ),
    ],
)
def test_user_counts_when_the_broker_accepts_the_last_token(exchange: Exchange, user: str) -> None:
    assert observe(observer(), exchange) == user


def test_user_is_in_the_configured_claim() -> None:
    assert observe(observer("email"), Exchange("OAUTHBEARER", [(bearer(SIGNED), b"")])) == "c@x"


@pytest.mark.parametrize(
    "exchange",
    [
        pytest.param(Exchange("PLAIN", []), id="no token"),
        pytest.param(UNFINISHED, id="the first of two rounds of SCRAM"),
        pytest.param(
            Exchange("SCRAM-SHA-256", [*UNFINISHED.tokens, (b"c=biws", b"e=invalid-proof")]), id="SCRAM, error"
        ),
        pytest.param(REFUSED_BEARER, id="OAUTHBEARER, refused"),
        pytest.param(Exchange("GSSAPI", [(b"ticket", b"")]), id="GSSAPI"),
        pytest.param(Exchange("", [(plain(), b"")]), id="no mechanism"),
        pytest.param(Exchange("PLAIN", [(b"alice", b"")]), id="PLAIN, malformed"),
        pytest.param(Exchange("PLAIN", [(plain("x" * 32768), b"")]), id="PLAIN, a name longer than any string"),
        pytest.param(DELEGATION_TOKEN, id="SCRAM, delegation token"),
        pytest.param(Exchange("OAUTHBEARER", [(bearer("opaque"), b"")]), id="OAUTHBEARER, opaque token"),
        pytest.param(Exchange("OAUTHBEARER", [(bearer(token({"exp": 1})), b"")]), id="OAUTHBEARER without the claim"),
        pytest.param(Exchange("OAUTHBEARER", [(bearer(token({"sub": 5})), b"")]), id="OAUTHBEARER, claim is a number"),
    ],
)
def test_user_is_unknown(exchange: Exchange) -> None:
    assert observe(observer(), exchange) is None


@pytest.mark.parametrize(
    ("first", "second", "user"),
    [
        pytest.param(PLAIN, BOB, "bob", id="the same mechanism"),
        pytest.param(BOB, SCRAM_256, "alice", id="another mechanism"),
        pytest.param(PLAIN, REFUSED_BEARER, None, id="another mechanism, refused"),
        pytest.param(UNFINISHED, Exchange("PLAIN", [(b"malformed", b"")]), None, id="after an exchange without an end"),
        pytest.param(Exchange("GSSAPI", [(b"ticket", b"")]), PLAIN, "alice", id="after an unknown mechanism"),
    ],
)
def test_next_exchange_on_the_connection(first: Exchange, second: Exchange, user: str | None) -> None:
    one = observer()
    observe(one, first)
    assert observe(one, second) == user


def test_tokens_outside_an_exchange_are_ignored() -> None:
    one = observer()
    one.client_token(plain())
    assert one.broker_token(b"") is None
    assert observe(one, PLAIN) == "alice"
    assert one.broker_token(b"") is None


@given(
    mechanism=st.sampled_from(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI"]),
    tokens=st.lists(st.tuples(st.binary(max_size=40), st.sampled_from([b"", b"v=x"]) | st.binary(max_size=9))),
    prefix=st.sampled_from([b"", b"n,,n=", b"n,,\x01auth=Bearer e30."]),
)
def test_no_token_raises(mechanism: str, tokens: Tokens, prefix: bytes) -> None:
    one = observer()
    one.handshake(mechanism)
    for client, broker in tokens:
        one.client_token(prefix + client)
        one.broker_token(broker)


def test_mechanism_without_users_is_logged_once_and_tokens_never(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    reported: set[str] = set()
    opaque = Exchange("OAUTHBEARER", [(bearer("alice-secret"), b"")])
    for exchange in (Exchange("GSSAPI", []), PLAIN, opaque, SCRAM_256, REFUSED_BEARER):
        for _ in range(2):
            observe(SaslObserver("sub", reported), exchange)
    said = [(record.__dict__["mechanism"], record.__dict__["reason"]) for record in caplog.records]
    assert said == [
        ("GSSAPI", "the proxy cannot read this mechanism"),
        ("OAUTHBEARER", "its token does not name the user"),
    ]
    assert not any(secret in str(record.__dict__) for record in caplog.records for secret in SECRETS)
