"""Real clients without a permission report the documented error, and the broker logs one line.

Every client is ANONYMOUS. A test protects its topic, group or transactional id with one ACL that allows all principals
to describe it and nothing else.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from typing import Any

import aiokafka
import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonNewTopic

from sluice.broker.security.acl.acl import CLUSTER_NAME, AclOperation, ResourceType
from sluice.protocol.apis.create_acls import AclCreation, CreateAclsRequest
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from tests.clients.driver import TIMEOUT_S
from tests.support.acls import AUTHORIZER_ON
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.wire import WireClient, error_codes

QUICK_GROUP = "group.initial.rebalance.delay.ms=0"
UNPROTECTED_IS_FREE = "allow.everyone.if.no.acl.found=true"
FREE = "free"
Attempt = Callable[[str, str], None]  # bootstrap, name of the protected resource


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with an authorizer and a topic without ACLs; it must stop cleanly."""
    properties = overrides(AUTHORIZER_ON, UNPROTECTED_IS_FREE, QUICK_GROUP)
    with running_broker(tmp_path_factory.mktemp("secured") / "log", *properties) as process:
        create(process, FREE)
        yield process
        assert process.stop()[0] == 0


def allow(broker: BrokerProcess, operation: AclOperation, resource_type: ResourceType, name: str) -> None:
    """Protect a resource: all principals may do this to it, and nothing else."""
    creation = AclCreation(
        resource_type=resource_type,
        resource_name=name,
        principal="User:*",
        host="*",
        operation=operation,
        permission_type=3,
    )
    with WireClient(broker.bootstrap) as client:
        assert error_codes(client.call(CreateAclsRequest(creations=[creation]), 3)) == []


def create(broker: BrokerProcess, topic: str) -> None:
    with WireClient(broker.bootstrap) as client:
        wanted = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
        assert error_codes(client.call(CreateTopicsRequest(topics=[wanted]), 7)) == []


def denied(broker: BrokerProcess, name: str) -> list[str]:
    """Return the distinct audit log lines about a resource; clients retry."""
    lines = re.findall(rf"operation = (\w+) .* resource = (\w+):LITERAL:{re.escape(name)} ", broker.log_text())
    return [f"{operation} {resource}" for operation, resource in dict.fromkeys(lines)]


# -- the clients -------------------------------------------------------------------------------------------------------


def in_time(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, TIMEOUT_S))


def aiokafka_write(bootstrap: str, name: str) -> None:
    async def main() -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait(name, b"value")

    in_time(main())


def aiokafka_read(bootstrap: str, name: str) -> None:
    async def main() -> None:
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            partition = aiokafka.TopicPartition(name, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            await consumer.getone()

    in_time(main())


async def start(create: Callable[[], Any]) -> None:
    """Start a client, and stop it, also if its start fails."""
    client = create()
    try:
        await client.start()
    finally:
        await client.stop()


def aiokafka_join(bootstrap: str, name: str) -> None:
    in_time(start(lambda: aiokafka.AIOKafkaConsumer(FREE, bootstrap_servers=bootstrap, group_id=name)))


def aiokafka_transact(bootstrap: str, name: str) -> None:
    in_time(start(lambda: aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)))


def aiokafka_create(bootstrap: str, name: str) -> None:
    async def main() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            response = await admin.create_topics([AioNewTopic(name, 1, 1)])
        finally:
            await admin.close()
        ((_, code, *_),) = response.topic_errors
        if code:
            raise aiokafka.errors.for_code(code)

    in_time(main())


def kafka_python_write(bootstrap: str, name: str) -> None:
    with closing(kafka.KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=False)) as producer:
        producer.send(name, b"value").get(timeout=TIMEOUT_S)


def kafka_python_read(bootstrap: str, name: str) -> None:
    with closing(kafka.KafkaConsumer(bootstrap_servers=bootstrap)) as consumer:
        partition = kafka.TopicPartition(name, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        consumer.poll(TIMEOUT_S * 1000)


def kafka_python_join(bootstrap: str, name: str) -> None:
    with closing(kafka.KafkaConsumer(FREE, bootstrap_servers=bootstrap, group_id=name)) as consumer:
        consumer.poll(TIMEOUT_S * 1000)


def kafka_python_transact(bootstrap: str, name: str) -> None:
    with closing(kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)) as producer:
        producer.init_transactions()


def kafka_python_create(bootstrap: str, name: str) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.create_topics([PythonNewTopic(name, 1, 1)])


def confluent_write(bootstrap: str, name: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    errors: list[Any] = []
    producer.produce(name, b"value", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    if errors[0] is not None:
        raise KafkaException(errors[0])


def confluent_consume(bootstrap: str, group: str, begin: Callable[[Consumer], object]) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        begin(consumer)
        message = consumer.poll(TIMEOUT_S)
        if message is not None and message.error() is not None:
            raise KafkaException(message.error())
    finally:
        consumer.close()


def confluent_read(bootstrap: str, name: str) -> None:
    confluent_consume(bootstrap, "unused", lambda consumer: consumer.assign([TopicPartition(name, 0, 0)]))


def confluent_join(bootstrap: str, name: str) -> None:
    confluent_consume(bootstrap, name, lambda consumer: consumer.subscribe([FREE]))


def confluent_transact(bootstrap: str, name: str) -> None:
    Producer({"bootstrap.servers": bootstrap, "transactional.id": name}).init_transactions(TIMEOUT_S)


def confluent_create(bootstrap: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})  # must outlive its futures
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(TIMEOUT_S)


def code_of(error: BaseException) -> int:
    """Return the error code in a client's exception."""
    if isinstance(error, KafkaException):
        return int(error.args[0].code())
    code = getattr(error, "errno", None)
    assert isinstance(code, int), repr(error)
    return code


TOPIC, GROUP, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID


ATTEMPTS = {
    "aiokafka writes": (aiokafka_write, TOPIC, 29, "WRITE Topic"),
    "aiokafka reads": (aiokafka_read, TOPIC, 29, "READ Topic"),
    "aiokafka joins": (aiokafka_join, GROUP, 30, "READ Group"),
    "aiokafka transacts": (aiokafka_transact, TRANSACTIONAL_ID, 53, "WRITE TransactionalId"),
    "aiokafka creates": (aiokafka_create, TOPIC, 29, "CREATE Topic"),
    "kafka-python writes": (kafka_python_write, TOPIC, 29, "WRITE Topic"),
    "kafka-python reads": (kafka_python_read, TOPIC, 29, "READ Topic"),
    "kafka-python joins": (kafka_python_join, GROUP, 30, "READ Group"),
    "kafka-python transacts": (kafka_python_transact, TRANSACTIONAL_ID, 53, "WRITE TransactionalId"),
    "kafka-python creates": (kafka_python_create, TOPIC, 29, "CREATE Topic"),
    "confluent-kafka writes": (confluent_write, TOPIC, 29, "WRITE Topic"),
    "confluent-kafka reads": (confluent_read, TOPIC, 29, "READ Topic"),
    "confluent-kafka joins": (confluent_join, GROUP, 30, "READ Group"),
    "confluent-kafka transacts": (confluent_transact, TRANSACTIONAL_ID, 53, "WRITE TransactionalId"),
    "confluent-kafka creates": (confluent_create, TOPIC, 29, "CREATE Topic"),
}


@pytest.mark.parametrize(("attempt", "resource_type", "code", "line"), ATTEMPTS.values(), ids=ATTEMPTS)
def test_missing_permission_is_reported_and_logged_once(
    secured: BrokerProcess, topic: str, attempt: Attempt, resource_type: ResourceType, code: int, line: str
) -> None:
    if attempt.__name__.endswith(("write", "read")):
        create(secured, topic)
    allow(secured, AclOperation.DESCRIBE, resource_type, topic)
    if attempt.__name__.endswith("create"):
        allow(secured, AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    with pytest.raises(Exception) as raised:  # noqa: PT011  (the clients have no common error class)
        attempt(secured.bootstrap, topic)
    assert code_of(raised.value) == code, repr(raised.value)
    assert denied(secured, topic) == [line]
