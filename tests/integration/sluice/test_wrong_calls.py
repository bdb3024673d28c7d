"""Wrong calls of the Python API beside a running broker: one line that states the place and the problem."""

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import sluice.faults
from sluice import Broker, SyncBroker, testing
from sluice.client import consumer as consumer_module
from sluice.client import errors as client_errors
from sluice.client.admin import AdminClient, NewTopic
from sluice.client.consumer import Consumer, TopicPartition
from sluice.client.producer import Producer
from sluice.errors import SluiceError
from sluice.kafka_test_case import KafkaTestCase

NUMBER, INTEGER, COUNT = "expected a number", "expected an integer", "expected an integer of at least 1"
VALUE = "expected bytes, str or None"

# Expression -> a part of the message. `with_`, `sync`, `producer`, `consumer`, `member` and `admin` are below.
CALLS = {
    # Brokers
    "entering(Broker())": "Broker: expected `async with`, got `with`. Or use sluice.SyncBroker",
    "entering_async(SyncBroker())": "SyncBroker: expected `with`, got `async with`. Or use sluice.Broker",
    "with_(brokers=0)": "sluice.brokers: expected an integer from 1 to 100, got 0",
    "with_(brokers='3')": f"SyncBroker: brokers: {INTEGER}, got '3' (str)",
    "with_(brokers=1.5)": f"SyncBroker: brokers: {INTEGER}, got 1.5 (float)",
    "with_(brokers=None)": f"SyncBroker: brokers: {INTEGER}, got None",
    "with_(brokers=10**9)": "sluice.brokers: expected an integer from 1 to 100, got 1000000000",
    "with_(broker=3)": "SyncBroker: broker: unknown argument; expected one of brokers, config,",
    "with_(port=9092)": "SyncBroker: port: unknown argument; expected one of brokers, config,",
    "with_(admin_port=-1)": "SyncBroker: admin_port: expected an integer from 0 to 65535 or None, got -1",
    "with_(admin_port=70000)": "admin_port: expected an integer from 0 to 65535 or None, got 70000",
    "with_(admin_port=True)": "admin_port: expected an integer from 0 to 65535 or None, got True",
    "with_(admin_port=taken)": "cannot listen on 127.0.0.1:",
    "with_(seed='x')": f"SyncBroker: seed: {INTEGER}, got 'x' (str)",
    "with_(config=['a=1'])": "SyncBroker: config: expected a dict or None, got ['a=1'] (list)",
    "with_(config={1: 2})": "SyncBroker: config: key 1: expected str, got 1 (int)",
    "with_(config={'num.partitions': None})": "config['num.partitions']: expected str, a number or True or False, got",
    "with_(config={'num.partitions': float('nan')})": "config['num.partitions']: expected str, a number or",
    "with_(config={'num.partition': 1})": "num.partition: no such property. Did you mean num.partitions?",
    "with_(config={'': 1})": "no such property",
    "with_(config={'num.partitions': True})": "config: num.partitions: expected an integer",
    "with_(config={'listeners': 'foo'})": "listeners: expected NAME://HOST:PORT, got foo",
    "with_(config={'listeners': 'PLAINTEXT://no.such.host.invalid:0'})": "cannot listen on no.such.host.invalid:0: ",
    "with_(config={'listeners': f'PLAINTEXT://127.0.0.1:{taken}'})": "Address already in use",
    "with_(config={'log.dirs': folder_file})": "log.dirs is a file; expected a directory",
    "with_(config={'listeners': 'SSL://127.0.0.1:0', 'ssl.keystore.location': '/tmp'})": "cannot be read: Is a dir",
    "with_(tls='yes')": "SyncBroker: tls: expected True or False, got 'yes' (str)",
    "with_(tls=True, config={'listeners': 'SSL://127.0.0.1:0'})": "listeners: excluded by tls and sasl, which set it",
    "with_(sasl='GSSAPI')": "sasl: expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or None, got 'GSSAPI'",
    "with_(users={'a': 'b'})": "users: no users without sasl; set sasl=",
    "with_(acls=[])": "acls: no users without sasl; set sasl=",
    "with_(sasl='PLAIN', users=['a'])": "SyncBroker: users: expected a dict or None, got ['a'] (list)",
    "with_(sasl='PLAIN', users={'a': 1})": "SyncBroker: users['a']: expected str, got 1 (int)",
    "with_(sasl='PLAIN', users={'a': ''})": "users: expected a name without a colon",
    "with_(sasl='PLAIN', acls='x')": "SyncBroker: acls: expected a list or None, got 'x' (str)",
    "with_(sasl='PLAIN', acls=[5])": "SyncBroker: acls[0]: expected a dict, got 5 (int)",
    "with_(sasl='PLAIN', acls=[{'allow': 'Read', 'topic': 't'}])": 'acls[0]: expected a dict such as {"user": "alice"',
    "with_(sasl='PLAIN', acls=[{'user': 'a', 'allow': 'Reed', 'topic': 't'}])": "acls[0].allow: expected one of All, ",
    "with_(sasl='PLAIN', acls=[{'user': 'a', 'allow': [], 'topic': 't'}])": "acls[0].allow: expected one or more of ",
    "with_(sasl='PLAIN', acls=[{'user': 'a', 'allow': 'Read', 'topics': 't'}])": "Did you mean topic?",
    "with_(sasl='PLAIN', acls=[{'user': 'a', 'allow': 'Read', 'topic': 5}])": "acls[0].topic: expected a name",
    "with_(sasl='PLAIN', acls=[{'user': 'a', 'deny': 'All', 'cluster': 'x'}])": "acls[0].cluster: expected True, got",
    "SyncBroker().bootstrap": "a broker is available only within `with`",
    "SyncBroker().quota(produce=1)": "a broker is available only within `with`",
    "Broker().bootstrap": "a broker is available only within `async with`",
    "again()": "a broker can be started only once; create another one",
    "stopped.quota(produce=1)": "the broker has stopped",
    "stopped.client().send('a', b'b')": "the broker has stopped",
    "stopped.cluster.create_topic('t')": "the broker has stopped",
    "stopped.faults.add('close')": "the broker has stopped",
    "stopped.reset()": "the broker has stopped",
    "stopped.start_scenario('rolling-restart')": "the broker has stopped",
    "stopped.wait_for('Throttle', timeout_s=0.1)": "after 0.1 s: 0 of 1 Throttle; no journal events during the wait",
    # Its client
    "sync.client(5)": "client: client_id: expected str, got 5 (int)",
    "sync.client().send('orders')": "send: values: expected at least one value, got none",
    "sync.client().send(b'orders', b'a')": "send: topic: expected str, got b'orders' (bytes)",
    "sync.client().send('a b', b'a')": "a b",
    "sync.client().send('', b'a')": "invalid topic",
    "sync.client().send('orders', {'a': 1})": f"send: values: {VALUE}, got {{'a': 1}} (dict)",
    "sync.client().send('orders', 5)": f"send: values: {VALUE}, got 5 (int)",
    "sync.client().send('orders', b'a', key=5)": f"send: key: {VALUE.replace('bytes, str', 'bytes, str')}, got 5 (int)",
    "sync.client().send('orders', b'a', partition='0')": "send: partition: expected an integer from 0 to",
    "sync.client().send('orders', b'a', partition=99, timeout_s=1)": "Partition 99 of topic orders not present in",
    "sync.client().send('orders', bytes(2_000_000))": "The message is 2000082 bytes when serialized",
    "sync.client().send('orders', a_coroutine())": f"send: values: {VALUE}, got a coroutine (is an await missing?)",
    "sync.client().send('orders', b'a', timeout=1)": "send: timeout: unknown argument; ",
    "sync.client().send('orders', b'a', timeout_s=-1)": f"send: timeout_s: {NUMBER} of at least 0, got -1",
    "sync.client().send('orders', '\\ud800')": "send: value: expected text that UTF-8 can encode",
    "sync.client().receive('absent', timeout_s=0.5)": "after 0.5 s: 0 of 1 records of topic absent",
    "sync.client().receive('orders', 0)": f"receive: count: {COUNT}, got 0",
    "sync.client().receive('orders', '1')": f"receive: count: {COUNT}, got '1' (str)",
    "sync.client().receive('orders', timeout_s=float('nan'))": f"receive: timeout_s: {NUMBER} of at least 0, got nan",
    "sync.client_config('confluent_kafka')": "client_config: library: expected one of confluent-kafka, aiokafka,",
    "sync.client_config('java', user='bob')": "client_config: user: no users without sasl",
    # Control
    "sync.cluster.stop()": "stop: node_id: missing; expected one of 1, 2",
    "sync.cluster.stop('1')": f"stop: node_id: {INTEGER} or None, got '1' (str)",
    "sync.cluster.stop(7)": "there is no broker 7; expected one of 1, 2",
    "sync.cluster.stop(True)": f"stop: node_id: {INTEGER} or None, got True",
    "sync.cluster.start(1)": "broker 1 is running",
    "sync.cluster.move_leader('orders', '0', 1)": "move_leader: partition: expected an integer from 0",
    "sync.cluster.move_leader('never', 0, 1)": "never",
    "sync.cluster.elect('orders', 0, 'best')": "elect: election: expected one of preferred, unclean, got 'best'",
    "sync.cluster.partition('orders', 99)": "partition orders-99 does not exist; expected partition 0 to 0",
    "sync.cluster.partition('never', 0)": "never",
    "sync.cluster.create_topic('orders')": "topic orders: TOPIC_ALREADY_EXISTS",
    "sync.cluster.create_topic('a/b')": "topic a/b: INVALID_TOPIC_EXCEPTION",
    "sync.cluster.create_topic(None)": "create_topic: name: expected str, got None",
    "sync.cluster.create_topic('z', 0)": "topic z: INVALID_PARTITIONS",
    "sync.cluster.create_topic('z', partitions=10**7)": "POLICY_VIOLATION: Excessively large number of partitions",
    "sync.cluster.create_topic('z', replication_factor=9)": "replication_factor: expected at most 2, the number of",
    "sync.cluster.create_topic('z', config={'nope': 1})": "topic z: INVALID_CONFIG: Unknown topic config name: nope",
    "sync.cluster.create_topic('z', config={'retention.ms': 'x'})": "Invalid value x for configuration retention.ms",
    "sync.cluster.create_topic('z', assignments={0: [9]})": "topic z: INVALID_REPLICA_ASSIGNMENT",
    "sync.cluster.create_topic('z', assignments={'0': [1]})": f"create_topic: assignments: key '0': {INTEGER}, got",
    "sync.quota()": "quota: expected at least one of produce, fetch, request_percentage, controller_mutation_rate",
    "sync.quota(fetch=1, client_id='')": "quota: Empty client-id not supported",
    "sync.quota(produce=True)": f"quota: produce: {NUMBER}, str or None, got True",
    "sync.quota(produce=0)": "quota: Quota producer_byte_rate must be greater than 0",
    "sync.quota(produce=float('inf'))": "quota: Quota producer_byte_rate must be a finite number",
    "sync.quota(produce='fast')": "quota.produce: expected bytes per second, such as 100000 or 100k, got fast",
    "sync.quota(client='a', produce=1)": "quota: client: unknown argument; expected one of client_id, user, produce",
    "sync.quota(client_id=1, produce=1)": "quota: client_id: expected str or None, got 1 (int)",
    "sync.quota(produce=1, producer_byte_rate=1)": "quota: produce and producer_byte_rate are the same quota",
    # Faults, scenarios, the journal
    "sync.faults.add('clos')": "fault.action: expected one of error, delay",
    "sync.faults.add(None)": "fault.action: expected text or a table",
    "sync.faults.add(faults.Close)": "fault.action: Close is a class: write Close()",
    "sync.faults.add(faults.Error('NOPE'))": "fault.action.code: unknown error code 'NOPE'; expected a name such as",
    "sync.faults.add(faults.Delay(ms=-1))": "fault.action.ms: ",
    "sync.faults.add('close', api='Prodce')": "fault.api: unknown API 'Prodce'. Did you mean Produce?",
    "sync.faults.add('close', apis='Produce')": "apis",
    "sync.faults.add('disk-full', times=1)": "fault.times: does not apply to disk-full; expected only ",
    "sync.faults.add('close', times=0)": "fault.times: ",
    "sync.faults.add('close', probability=2)": "fault.probability: ",
    "sync.faults.add({'action': 'close'}, api='Fetch')": "fault: a whole rule excludes further fields; move api into",
    "sync.faults.add('close', times='3')": "fault.times: expected a whole number or nothing, got '3'",
    "sync.faults.add(faults.Rule('close'), times=3)": "fault: a whole rule excludes further fields; move times into",
    "sync.faults.add({'action': 'close', 'tmes': 3})": "fault.tmes: unknown field",
    "sync.faults.remove('none')": "unknown fault rule 'none'",
    "sync.faults.remove(5)": "remove: fault_id: expected str, got 5 (int)",
    "sync.start_scenario('nope')": "nope: unknown scenario; expected",
    "sync.start_scenario('/no/such.toml')": "/no/such.toml: cannot read: No such file or directory",
    "sync.run_scenario('rolling-restart')": "brokers: the scenario expects 1, 2, 3, got 1, 2",
    "sync.journal.events(kind='x')": "kind: expected one of connection-opened, ",
    "sync.journal.events(api='produce')": "Did you mean Produce?",
    "sync.journal.events(after='x')": "events: after: expected an integer from 0 to",
    "sync.journal.events(broker='1')": "broker",
    "sync.wait_for('Throtle')": "wait_for: what: expected one of ConnectionOpened, ",
    "sync.wait_for(5)": "wait_for: what: expected ",
    "sync.wait_for(int)": "wait_for: what: expected a type of sluice.journal_events, got the class int",
    "sync.wait_for('Throttle', times=0)": f"wait_for: times: {COUNT}, got 0",
    "sync.wait_for('Throttle', timeout_s=None)": f"wait_for: timeout_s: {NUMBER} of at least 0, got None",
    "sync.wait_for('Throttle', where=5)": "wait_for: where: expected a function or None, got 5 (int)",
    "sync.assert_throttled(5)": "assert_throttled: client_id: expected str, got 5 (int)",
    "sync.assert_throttled('a', quota='produce')": "Did you mean Produce?",
    "sync.assert_requests('Produce', exactly='1')": "assert_requests: exactly: expected an integer from 0",
    "sync.assert_requests('Produce', count=1)": "assert_requests: count: unknown argument; expected one of api,",
    "sync.assert_backoff('a', kip=1)": "kip: expected one of 580, 144, got 1",
    # The client library
    "producer(None)": "Producer: config: expected a dict, got None",
    "producer({})": "producer: bootstrap.servers is missing; expected HOST:PORT",
    "producer({'bootstrap.servers': 'localhost'})": "bootstrap.servers: expected HOST:PORT",
    "producer({'bootstrap.servers': 'localhost:99999'})": "bootstrap.servers: expected HOST:PORT",
    "producer({'bootstrap.servers': 'http://localhost:9092'})": "bootstrap.servers: expected HOST:PORT",
    "producer({'bootstrap_servers': 'localhost:1'})": "bootstrap_servers: no such property. Did you mean",
    "producer({'bootstrap.servers': 'a:1', 'acks': '5'})": "acks: expected one of all, -1, 0, 1, got 5",
    "producer({'bootstrap.servers': 'a:1', 'linger.ms': float('nan')})": "Producer: config['linger.ms']: expected ",
    "producer({'bootstrap.servers': 'a:1', 'client.id': None})": "Producer: config['client.id']: expected ",
    "Producer({'bootstrap.servers': 'a:1'}, profile='x')": "Producer: profile: expected one of kafka, kip, got 'x'",
    "Producer({'bootstrap.servers': 'a:1'}).send('a', b'b')": "the producer is not started; use it within `async with`",
    "Consumer({'bootstrap.servers': 'a:1'}).poll(1)": "the consumer is not started; use it within `async with`",
    "Consumer({'bootstrap.servers': 'a:1'}).position(P)": "the consumer is not started; use it within `async with`",
    "producing(lambda p: p.send('t', 1.5))": "send: value: expected bytes, bytearray, memoryview, str or None, got 1.5",
    "producing(lambda p: p.send(None, b''))": "send: topic: expected str, got None",
    "producing(lambda p: p.send('t', b'', timestamp_ms=2**70))": "send: timestamp_ms: expected an integer from 0 to",
    "producing(lambda p: p.send('t', b'', headers={'a': b''}))": "send: headers: expected a list, got {'a': b''}",
    "producing(lambda p: p.send('t', b'', headers=[('a',)]))": "send: headers[0]: expected a tuple of 2, got ('a',)",
    "producing(lambda p: p.send('t', b'', headers=[(1, b'')]))": "send: headers[0]: expected str, got 1 (int)",
    "producing(lambda p: p.commit_transaction())": "transactional.id is not set",
    "producing(lambda p: p.partitions_for(5))": "partitions_for: topic: expected str, got 5 (int)",
    "consuming(lambda c: c.poll(1))": "nothing to read; subscribe to topics, or assign partitions",
    "consuming(lambda c: c.poll('1'))": f"poll: timeout_ms: {NUMBER} of at least 0, got '1' (str)",
    "consuming(lambda c: c.poll(float('inf')))": f"poll: timeout_ms: {NUMBER} of at least 0, got inf",
    "consuming(lambda c: c.subscribe(['t']))": "cannot subscribe: group.id is not set",
    "consuming(lambda c: c.subscribe('t'), 'g')": "subscribe: topics: expected a list or Pattern, got 't' (str)",
    "consuming(lambda c: c.assign([('t', 0)]))": "assign: partitions[0]: expected TopicPartition, got ('t', 0) (tuple)",
    "consuming(lambda c: c.assign([TopicPartition('t', -1)]))": "assign: partitions[0].partition: expected an integer",
    "consuming(lambda c: c.seek(P, 0))": "partition t-0 is not assigned to this consumer",
    "consuming(lambda c: c.seek(P, -1))": "seek: offset: expected an integer of at least 0, got -1",
    "consuming(lambda c: c.commit(), None)": "cannot commit: group.id is not set",
    "consuming(lambda c: c.commit({P: 5}), 'g')": "commit: offsets[TopicPartition(topic='t', partition=0)]: expected",
    "consuming(lambda c: c.end_offsets({}, timeout_ms=-1))": f"end_offsets: timeout_ms: {NUMBER} of at least 0 or None",
    "administering(lambda a: a.create_topics('t'))": "create_topics: topics: expected a list, got 't' (str)",
    "administering(lambda a: a.create_topics(['t']))": "create_topics: topics[0]: expected NewTopic, got 't' (str)",
    "administering(lambda a: a.create_topics([NewTopic('n', 2**40)]))": "CreateTopics: the request cannot be encoded",
    "administering(lambda a: a.list_topics(timeout_ms=1.5))": f"list_topics: timeout_ms: {INTEGER} of at",
    "administering(lambda a: a.describe_topics(['none']))": "does not host this topic-partition",
    "administering(lambda a: a.alter_client_quotas([1]))": "quotas: expected a dict, got [1] (list)",
    "AdminClient({'bootstrap.servers': 'a:1'})": "no event loop runs in this thread; create the client in a coroutine",
    # Virtual time and unittest
    "testing.run(lambda: 1)": "run: main: expected ",
    "testing.run(a_coroutine(), seed='x')": f"run: seed: {INTEGER}, got 'x' (str)",
    "testing.run(a_coroutine(), until=-1)": f"run: until: {NUMBER} of at least 0, got -1",
    "testing.network()": "network: no event loop runs in virtual time; call it within sluice.testing.run()",
    "test_case({'broker': 1})": "broker: unknown option; expected one of brokers, config",
    "test_case({'tls': 1})": "tls: expected True or False, got 1",
    "test_case({'quota': ['1M']})": "quota: expected arguments of quota()",
    "test_case({'quota': {'client_id': 3, 'produce': 1}})": "quota.client_id: expected text",
    "test_case({'faults': ['close', 'clos']})": "faults[1]: fault.action: expected one of error, ",
    "test_case({'scenario': 'rolling-restart', 'brokers': 1})": "brokers: the scenario expects 1, 2, 3, got 1",
}


async def a_coroutine() -> None:
    """Do nothing."""


PUBLIC = (Broker, SyncBroker, Producer, Consumer, AdminClient, NewTopic, TopicPartition)


class Calls:
    """The names of the expressions."""

    def __init__(self, sync: SyncBroker, stopped: SyncBroker) -> None:
        self._bootstrap = sync.bootstrap
        self.names: dict[str, Any] = {
            **{one.__name__: one for one in PUBLIC},
            "a_coroutine": a_coroutine,
            "asyncio": asyncio,
            "testing": testing,
            "folder_file": __file__,
            **{name: getattr(self, name) for name in dir(self) if not name.startswith("_")},
            "sync": sync,
            "stopped": stopped,
            "taken": int(sync.brokers[1].rpartition(":")[2]),
            "faults": sluice.faults,
            "P": TopicPartition("t", 0),
        }

    def with_(self, **options: Any) -> None:
        with SyncBroker(**options):
            pass

    def entering(self, broker: Any) -> None:
        with broker:
            pass

    async def entering_async(self, broker: Any) -> None:
        async with broker:
            pass

    def again(self) -> None:
        broker = SyncBroker()
        for _ in range(2):
            with broker:
                pass

    async def producer(self, config: Any) -> None:
        async with Producer(config):
            pass

    async def producing(self, call: Any) -> None:
        async with Producer({"bootstrap.servers": self._bootstrap, "max.block.ms": 2000}) as producer:
            await call(producer)

    async def consuming(self, call: Any, group: str | None = None) -> None:
        group_id = {} if group is None else {"group.id": group}
        async with Consumer({"bootstrap.servers": self._bootstrap, **group_id}) as consumer:
            result = call(consumer)
            if inspect.isawaitable(result):
                await result

    async def administering(self, call: Any) -> None:
        async with AdminClient({"bootstrap.servers": self._bootstrap}) as admin:
            (await call(admin)).all()

    def test_case(self, options: Any) -> None:
        case = type("Case", (KafkaTestCase,), {"kafka_options": options, "test_it": lambda self: None})("test_it")
        case.debug()


@pytest.fixture(scope="module")
def calls() -> Iterator[Calls]:
    with SyncBroker() as stopped:
        pass
    with SyncBroker(2) as broker:
        broker.cluster.create_topic("orders")
        yield Calls(broker, stopped)


def evaluate(call: str, calls: Calls) -> None:
    result = eval(call, calls.names)
    if inspect.iscoroutine(result):
        asyncio.run(result)


def is_public(error: type[SluiceError]) -> bool:
    """Whether it is an attribute of `sluice`, or one of the client's exceptions."""
    places = (sluice, client_errors, consumer_module)
    return any(getattr(place, error.__name__, None) is error for place in places)


@pytest.mark.parametrize("call", CALLS)
def test_wrong_call_is_one_line(call: str, calls: Calls) -> None:
    with pytest.raises(SluiceError) as raised:
        evaluate(call, calls)
    message = str(raised.value)
    assert is_public(type(raised.value)), "users catch it by its name"
    assert CALLS[call] in message
    assert "\n" not in message.partition("; last events:")[0]
