"""TLS between socket and connection: requests, back-pressure, close, and failed handshakes."""

import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.broker.network.tls_transport import HANDSHAKE_TIMEOUT_MS
from sluice.protocol.apis import incremental_alter_configs as api
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from tests.support.certificates import certificates
from tests.support.records import fetch, produce, produce_of
from tests.support.tls_client import TlsClient
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

CERTIFICATES = certificates()
TLS = ("listeners=SSL://127.0.0.1:0", *CERTIFICATES.broker_overrides)
MUTUAL = (*TLS, "ssl.client.auth=required", f"ssl.truststore.location={CERTIFICATES.ca}")


def connected(broker: VirtualBroker, context: ssl.SSLContext | None = None) -> TlsClient:
    client = TlsClient(broker, context or CERTIFICATES.client_context())
    client.shake_hands()
    return client


@pytest.fixture
def broker() -> VirtualBroker:
    return broker_with_topic(*TLS)


@pytest.fixture
def client(broker: VirtualBroker) -> TlsClient:
    return connected(broker)


@pytest.fixture
def stranger(broker: VirtualBroker) -> TlsClient:
    """A client before its handshake."""
    return TlsClient(broker, CERTIFICATES.client_context())


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the reasons of all log lines, which must be "TLS failed"."""
    assert {record.getMessage() for record in caplog.records} <= {"TLS failed"}
    return [str(vars(record)["reason"]) for record in caplog.records]


def reconfigure(client: TlsClient, key_store: Path) -> tuple[int, str | None]:
    config = api.AlterableConfig(name="listener.name.ssl.ssl.keystore.location", value=str(key_store))
    resource = api.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
    (response,) = client.call(api.IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    return response.error_code, response.error_message


def test_new_connections_get_the_reconfigured_certificate(broker: VirtualBroker, client: TlsClient) -> None:
    old = client.tls.getpeercert(binary_form=True)
    assert reconfigure(client, CERTIFICATES.alice) == (ErrorCode.NONE, None)
    trusting = CERTIFICATES.client_context()
    trusting.check_hostname = False
    assert connected(broker, trusting).tls.getpeercert(binary_form=True) != old
    assert client.call(MetadataRequest(topics=[]), 9).brokers, "open connections stay"
    assert reconfigure(client, CERTIFICATES.broker) == (ErrorCode.NONE, None)
    assert connected(broker).tls.getpeercert(binary_form=True) == old


@pytest.mark.parametrize("key_store", [CERTIFICATES.ca, Path("missing.pem")], ids=["without a key", "missing"])
def test_invalid_key_store_is_refused(broker: VirtualBroker, client: TlsClient, key_store: Path) -> None:
    code, message = reconfigure(client, key_store)
    assert code == ErrorCode.INVALID_REQUEST
    assert message is not None
    assert f"Failed to load PEM SSL keystore {key_store} " in message
    assert connected(broker).call(MetadataRequest(topics=[]), 9).brokers


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_requests_are_answered_over_both_tls_versions(version: str) -> None:
    client = connected(VirtualBroker(*TLS, f"ssl.enabled.protocols={version}"))
    assert client.tls.version() == version
    assert client.call(MetadataRequest(topics=[]), 9).brokers[0].port


def test_request_and_response_larger_than_any_buffer_are_transferred(client: TlsClient) -> None:
    assert client.call(produce_of(900_000, 9, "client"), 9).responses[0].partition_responses[0].error_code == 0
    response = client.call(fetch(0, max_bytes=2_000_000), 11)
    assert len(bytes(response.responses[0].partitions[0].records)) > 890_000


def test_requests_of_one_read_are_answered_in_order(client: TlsClient) -> None:
    client.send_together(*[(ApiVersionsRequest(), 0)] * 300)  # more than one loop iteration handles
    assert [response.correlation_id for response in client.take_responses()] == list(range(1, 301))


def test_input_with_little_content_is_handled_in_several_event_loop_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of key updates, which the ssl module cannot send; here each byte has its own record."""
    client = connected(VirtualBroker(*TLS))
    count = 300
    for _ in range(count):
        for byte in client.frame(ApiVersionsRequest(), 0):
            client.tls.write(bytes([byte]))
    pauses: list[None] = []
    pause = client.transport.pause_reading
    monkeypatch.setattr(client.transport, "pause_reading", lambda: pauses.append(pause()))
    records = client.take_outgoing()
    client.send_plain(records)
    assert len(pauses) >= len(records) // 30_000 > 3
    client.send(ApiVersionsRequest(), 0)
    assert len(client.take_responses()) == count + 1


def test_muted_connection_is_not_read_until_its_throttle_time_is_over() -> None:
    broker = broker_with_topic(*TLS, "quota.producer.default=1000")
    client = connected(broker)
    throttle_ms = client.exchange(produce_of(20_000, 9, "client"), 9).throttle_time_ms
    client.send(produce(9), 9)
    client.send(produce(9), 9)
    assert (client.responses, client.transport.reading) == ([], False)
    assert client.unread_bytes > 0, "a muted connection is not read"
    broker.advance(throttle_ms)
    assert client.response().at_ms == throttle_ms


def test_client_that_resumes_reading_gets_all_responses(client: TlsClient) -> None:
    client.send(produce_of(900_000, 9, "client"), 9)
    client.response()
    client.stop_reading()
    client.send_together(*[(fetch(0, max_bytes=2_000_000), 11)] * 3)
    assert client.responses == []
    encrypted = len(client.transport.unsent)
    assert encrypted < 900_000, "data is not encrypted before the socket accepts it"
    client.read_on()
    assert len(client.take_responses()) == 3


@pytest.mark.parametrize("half_close", [TlsClient.end, TlsClient.say_goodbye], ids=["end of stream", "close_notify"])
def test_half_closed_connection_gets_its_response(
    client: TlsClient, broker: VirtualBroker, half_close: Callable[[TlsClient], None]
) -> None:
    client.send(fetch(0, max_wait_ms=500, min_bytes=1), 11)
    half_close(client)
    assert client.is_open
    broker.advance(500)
    assert client.response().at_ms == 500
    assert not client.is_open


def test_close_notify_is_answered_with_close_notify(client: TlsClient) -> None:
    client.say_goodbye()
    assert not client.is_open
    assert client.tls_ended


def test_idle_tls_connection_is_closed() -> None:
    broker = VirtualBroker(*TLS, "connections.max.idle.ms=60000")
    client = connected(broker)
    broker.advance(59_000)
    assert broker.server.connections
    broker.advance(7_000)
    assert not client.is_open
    assert broker.server.connections == {}


def test_killed_client_leaves_no_state(client: TlsClient, broker: VirtualBroker) -> None:
    client.send(fetch(0, max_wait_ms=500, min_bytes=1), 11)
    assert len(broker.broker.replicas.fetches) == 1
    client.leave()
    assert (len(broker.broker.replicas.fetches), broker.server.connections) == (0, {})


def test_handshake_times_out_after_ten_seconds(stranger: TlsClient, caplog: pytest.LogCaptureFixture) -> None:
    stranger.broker.advance(HANDSHAKE_TIMEOUT_MS - 1)
    assert caplog.records == []
    stranger.broker.advance(1)
    assert not stranger.is_open
    assert failures(caplog) == ["the handshake took longer than 10 s"]


def test_connection_closed_without_data_logs_nothing(broker: VirtualBroker, caplog: pytest.LogCaptureFixture) -> None:
    TlsClient(broker, CERTIFICATES.client_context()).end()
    TlsClient(broker, CERTIFICATES.client_context()).leave()
    assert failures(caplog) == []
    broker.advance(2 * HANDSHAKE_TIMEOUT_MS)
    assert failures(caplog) == []


PLAIN_TEXT = {
    "a request": b"\x00\x00\x00\x17\x00\x12\x00\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00",
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "bytes of no protocol": b"\xff" * 100,
}


@pytest.mark.parametrize("data", PLAIN_TEXT.values(), ids=PLAIN_TEXT)
def test_plain_text_on_a_tls_port_logs_one_line(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    client = TlsClient(VirtualBroker(*TLS), CERTIFICATES.client_context())
    client.send_plain(data)
    assert not client.is_open
    assert failures(caplog) == ["the client does not speak TLS; does it send plain text to a TLS port?"]


def test_client_that_does_not_trust_the_broker_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    client = TlsClient(VirtualBroker(*TLS), ssl.create_default_context(cafile=CERTIFICATES.other_ca))
    with pytest.raises(ssl.SSLCertVerificationError):
        client.shake_hands()
    assert failures(caplog) == ["the client does not trust the broker's certificate: TLSV1_ALERT_UNKNOWN_CA"]


def test_disconnect_during_the_handshake_is_logged(stranger: TlsClient, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ssl.SSLWantReadError):
        stranger.tls.do_handshake()
    stranger.send_bytes(b"")
    stranger.leave()
    assert failures(caplog) == [
        "the client disconnected during the handshake; it may not trust the broker's certificate"
    ]


def test_tls_version_that_is_not_enabled_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    context = CERTIFICATES.client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    client = TlsClient(VirtualBroker(*TLS, "ssl.enabled.protocols=TLSv1.3"), context)
    with pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"):
        client.shake_hands()
    (reason,) = failures(caplog)
    assert reason.startswith("the client's TLS version is not enabled")


def test_missing_common_cipher_suite_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    context = CERTIFICATES.client_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    suites = "ssl.cipher.suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    client = TlsClient(VirtualBroker(*TLS, suites), context)
    with pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"):
        client.shake_hands()
    assert failures(caplog) == ["no cipher suite in common (ssl.cipher.suites): NO_SHARED_CIPHER"]


REJECTED_CERTIFICATES = {
    "expired": (
        CERTIFICATES.expired,
        "CERTIFICATE_EXPIRED",
        "the client's certificate was rejected: certificate has expired",
    ),
    "unknown authority": (
        CERTIFICATES.stranger,
        "UNKNOWN_CA",
        "the client's certificate was rejected: unable to get local issuer certificate",
    ),
    "no certificate": (
        None,
        "CERTIFICATE_REQUIRED",
        "the client sent no certificate (ssl.client.auth=required): PEER_DID_NOT_RETURN_A_CERTIFICATE",
    ),
}


@pytest.mark.parametrize(("certificate", "alert", "reason"), REJECTED_CERTIFICATES.values(), ids=REJECTED_CERTIFICATES)
def test_rejected_certificate_is_reported_to_the_client_and_logged(
    certificate: Path | None, alert: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    broker = VirtualBroker(*MUTUAL)
    client = TlsClient(broker, CERTIFICATES.client_context(certificate))
    client.shake_hands()  # in TLS 1.3 the client finishes before the broker verifies
    assert client.alert.endswith(f"ALERT_{alert}")
    assert failures(caplog) == [reason]
    assert (client.is_open, broker.server.connections) == (False, {})


def test_undecryptable_data_closes_the_connection_and_logs_one_line(caplog: pytest.LogCaptureFixture) -> None:
    broker = VirtualBroker(*TLS)
    client = connected(broker)
    client.send_plain(b"\x17\x03\x03\x00\x20" + bytes(32))
    assert (client.is_open, broker.server.connections) == (False, {})
    (record,) = caplog.records
    assert record.getMessage() == "connection closed"
    assert str(vars(record)["reason"]).startswith("TLS failed: ")
    (listener,) = broker.server.channel_builders
    assert listener.authentications.failed == 0


@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_corrupted_handshake_fails_within_the_handshake_timeout(data: st.DataObject) -> None:
    broker = VirtualBroker(*TLS)
    client = TlsClient(broker, CERTIFICATES.client_context())
    with suppress(ssl.SSLWantReadError):
        client.tls.do_handshake()
    hello = bytearray(client.take_outgoing())
    for _ in range(data.draw(st.integers(1, 5), label="changes")):
        hello[data.draw(st.integers(0, len(hello) - 1))] = data.draw(st.integers(0, 255))
    client.send_plain(bytes(hello[: data.draw(st.integers(1, len(hello)), label="bytes")]))
    broker.advance(HANDSHAKE_TIMEOUT_MS)
    (listener,) = broker.server.channel_builders
    assert (client.is_open, listener.authentications.failed) == (False, 1)


def test_stopping_broker_aborts_handshakes(stranger: TlsClient, caplog: pytest.LogCaptureFixture) -> None:
    stranger.broker.run(stranger.broker.server.stop())
    assert stranger.transport.aborted
    assert failures(caplog) == []
