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
    observer.handshake(exchange.mechanism)
    user = None
    for client, broker in exchange.tokens:
        assert user is None
        observer.client_token(client)
        user = observer.broker_token(broker)
    return user


def observer(claim: str = "sub") -> SaslObserver:
    return SaslObserver(claim, set())


ACCEPTED = {
    "PLAIN": (PLAIN, "alice"),
    "PLAIN, not ASCII": (Exchange("PLAIN", [(plain("älice", "pässword"), b"")]), "älice"),
    "PLAIN, authorization id": (Exchange("PLAIN", [(plain(authorization_id="other"), b"")]), "alice"),
    "SCRAM-SHA-256": (SCRAM_256, "alice"),
    "SCRAM-SHA-512, escaped": (Exchange("SCRAM-SHA-512", scram(ScramMechanism.SCRAM_SHA_512, "a=b,c")), "a=b,c"),
    "OAUTHBEARER, signed": (Exchange("OAUTHBEARER", [(bearer(SIGNED), b"")]), "carol"),
    "OAUTHBEARER, unsecured": (Exchange("OAUTHBEARER", [(bearer(token({"sub": "eve"})), b"")]), "eve"),
}


@pytest.mark.parametrize(("exchange", "user"), ACCEPTED.values(), ids=ACCEPTED)
def test_user_counts_when_the_broker_accepts_the_last_token(exchange: Exchange, user: str) -> None:
    assert observe(observer(), exchange) == user


def test_user_is_in_the_configured_claim() -> None:
    assert observe(observer("email"), Exchange("OAUTHBEARER", [(bearer(SIGNED), b"")])) == "c@x"


UNKNOWN = {
    "no token": Exchange("PLAIN", []),
    "the first of two rounds of SCRAM": UNFINISHED,
    "SCRAM, error": Exchange("SCRAM-SHA-256", [*UNFINISHED.tokens, (b"c=biws", b"e=invalid-proof")]),
    "OAUTHBEARER, refused": REFUSED_BEARER,
    "GSSAPI": Exchange("GSSAPI", [(b"ticket", b"")]),
    "no mechanism": Exchange("", [(plain(), b"")]),
    "PLAIN, malformed": Exchange("PLAIN", [(b"alice", b"")]),
    "PLAIN, a name longer than any string": Exchange("PLAIN", [(plain("x" * 32768), b"")]),
    "SCRAM, delegation token": DELEGATION_TOKEN,
    "OAUTHBEARER, opaque token": Exchange("OAUTHBEARER", [(bearer("opaque"), b"")]),
    "OAUTHBEARER without the claim": Exchange("OAUTHBEARER", [(bearer(token({"exp": 1})), b"")]),
    "OAUTHBEARER, claim is a number": Exchange("OAUTHBEARER", [(bearer(token({"sub": 5})), b"")]),
}


@pytest.mark.parametrize("exchange", UNKNOWN.values(), ids=UNKNOWN)
def test_user_is_unknown(exchange: Exchange) -> None:
    assert observe(observer(), exchange) is None


NEXT_EXCHANGES = {
    "the same mechanism": (PLAIN, BOB, "bob"),
    "another mechanism": (BOB, SCRAM_256, "alice"),
    "another mechanism, refused": (PLAIN, REFUSED_BEARER, None),
    "after an exchange without an end": (UNFINISHED, Exchange("PLAIN", [(b"malformed", b"")]), None),
    "after an unknown mechanism": (Exchange("GSSAPI", [(b"ticket", b"")]), PLAIN, "alice"),
}


@pytest.mark.parametrize(("first", "second", "user"), NEXT_EXCHANGES.values(), ids=NEXT_EXCHANGES)
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
