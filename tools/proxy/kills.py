"""Kill brokers behind `sluice proxy`, and the proxy, under clients whose histories are checked.

`python -m tools.proxy.kills` (campaign `proxy-kills`) starts three brokers of Apache Kafka, or one. Every third killed
broker starts again on another port. The clients are those of the histories, and idempotent and transactional producers
of confluent-kafka and kafka-python; the checks are those of the histories.
"""

import asyncio
import logging
import math
import os
import statistics
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

import click

from sluice.client.admin import AdminClient, NewTopic
from sluice.client.consumer import Consumer, TopicPartition
from sluice.client.errors import TimeoutException
from tests.support.apache_kafka import BUILD, ApacheKafka, running, why_not
from tests.support.broker_process import BrokerProcess
from tests.support.ports import free_ports
from tools.histories import consumer_group
from tools.histories.checks import anomalies
from tools.histories.clients import TOPIC, ProducerClient
from tools.histories.copying import COPIES, copy, read_copies
from tools.histories.history import Guarantee, History, Send
from tools.histories.run import on_exception, read_all
from tools.histories.workload import PARTITIONS, Workload, instances, now_ms, processes, produce, transact
from tools.proxy.matrix import UPSTREAM_HOST, Cell, Security, port_of, proxy_arguments
from tools.proxy.producers import ConfluentProducer, KafkaPythonProducer

PROPERTIES = (
    # Brokers whose process was killed lose their partitions soon, and open transactions end soon.
    "broker.heartbeat.interval.ms=500",
    "broker.session.timeout.ms=3000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
    *(f"{name}={value}" for name, value in consumer_group.BROKER_CONFIG.items()),
)
# Of more than one broker.
REPLICATED = (
    "default.replication.factor=3",
    "min.insync.replicas=2",
    "offsets.topic.replication.factor=3",
    "transaction.state.log.replication.factor=3",
    "transaction.state.log.min.isr=2",
)
_MOVES_EVERY = 3  # kills of brokers
# Between a start and the next kill: clients recover, or are still about to.
_MEAN_PAUSE_S = 2.0
# Open transactions are aborted meanwhile: their timeout, and the interval above.
_SETTLE_S = 12
_END_S = 30
# More than calls of producers that block at the same time.
_THREADS = 32
_LOG_CHARACTERS = 5_000
_FINAL_READ_S = 60


class Cluster:
    """Apache Kafka, and the proxy in front of it."""

    def __init__(self, folder: Path, kafka: ApacheKafka, *, is_direct: bool) -> None:
        self.kafka = kafka
        self._folder = folder
        self._arguments = [] if is_direct else [*proxy_arguments(Cell(len(kafka.addresses), Security.PLAIN), folder)]
        self._spare_ports = [*free_ports(6)]
        self._starts = self._kills = 0
        self.proxy: BrokerProcess | None = None

    @property
    def bootstrap(self) -> str:
        return ",".join(self.proxy.ready["brokers"] if self.proxy else self.kafka.addresses.values())

    def start_proxy(self) -> None:
        if self._arguments:
            self._starts += 1
            log = self._folder / f"proxy-{self._starts}.log"
            arguments = ["--upstream", ",".join(self.kafka.addresses.values()), "--admin-port", "0", *self._arguments]
            self.proxy = BrokerProcess(log, *arguments, command="proxy")

    def kill_proxy(self) -> str:
        if self.proxy is not None:
            self.proxy.kill()
            self.start_proxy()
        return "the proxy"

    def kill_broker(self, node: int) -> str:
        self._kills += 1
        port = None
        if self._kills % _MOVES_EVERY == 0:
            self._spare_ports.append(port_of(self.kafka.addresses[node]))
            port = self._spare_ports.pop(0)
        self.kafka.stop_node(node, kill=True)
        self.kafka.start_node(node, port=port)
        return f"broker {node}{f', now on port {port}' if port else ''}"

    def unexpected_lines(self) -> list[str]:
        """Return errors in the logs of the proxies."""
        logs = [self._folder / f"proxy-{number}.log" for number in range(1, self._starts + 1)]
        return [
            line for log in logs for line in log.read_text().splitlines() if " ERROR " in line or "Traceback" in line
        ]


async def play(cluster: Cluster, history: History, random: Random, kills: int, proxy_kills: int) -> list[float]:
    """Kill under clients, and read everything; return the times at which a killed process was ready again."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(on_exception)
    loop.set_default_executor(ThreadPoolExecutor(_THREADS))
    await asyncio.to_thread(cluster.start_proxy)
    bootstrap = cluster.bootstrap
    await _create_topics(bootstrap, 3 if len(cluster.kafka.addresses) > 1 else 1)
    workload = Workload(bootstrap, history, random, math.inf, "kafka-4.4")
    tasks = [asyncio.ensure_future(process()) for process in _processes(workload)]
    nodes = [*cluster.kafka.addresses]
    victims = [partial(cluster.kill_broker, random.choice(nodes)) for _ in range(kills)]
    victims += [partial(cluster.kill_proxy)] * proxy_kills
    random.shuffle(victims)
    recoveries = []
    for kill in victims:
        await workload.pause(_MEAN_PAUSE_S)
        began_ms = now_ms()
        what = await asyncio.to_thread(kill)
        recoveries.append(now_ms())
        history.failures.append((began_ms, f"{what} was killed and ready again after {now_ms() - began_ms:.0f} ms"))
        print(f"{len(recoveries)} of {len(victims)}: {history.failures[-1][1]}", flush=True)
    await asyncio.sleep(_SETTLE_S)
    workload.until_s = loop.time()
    await asyncio.wait(tasks, timeout=_END_S)
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result
    await asyncio.sleep(_SETTLE_S)
    await _wait_until_readable(bootstrap)
    for committed_only in (False, True):
        await read_all(bootstrap, history, committed_only=committed_only)
    async with asyncio.timeout(_FINAL_READ_S):
        history.copies, history.copied_up_to = await read_copies(bootstrap)
    return recoveries


async def _create_topics(bootstrap: str, replicas: int) -> None:
    async with AdminClient({"bootstrap.servers": bootstrap}) as admin:
        (await admin.create_topics([NewTopic(name, PARTITIONS, replicas) for name in (TOPIC, COPIES)])).all()


async def _wait_until_readable(bootstrap: str) -> None:
    """Wait until a client receives end offsets; print the time if it is not the first one."""
    began_ms, partitions = now_ms(), [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    async with asyncio.timeout(_FINAL_READ_S):
        while True:
            try:
                async with Consumer({"bootstrap.servers": bootstrap, "default.api.timeout.ms": 5_000}) as consumer:
                    await consumer.end_offsets(partitions)
                return
            except TimeoutException as error:
                print(f"{now_ms() - began_ms:.0f} ms after all failures: {error}", flush=True)


def _processes(workload: Workload) -> list[Callable[[], Awaitable[None]]]:
    own: list[tuple[str, Callable[[str], Awaitable[None]]]] = [
        (name, partial(copy, workload, f"{name}-id")) for name in ("copier-1", "copier-2")
    ]
    classes: Mapping[str, Callable[..., ProducerClient]] = {
        "confluent-kafka": ConfluentProducer,
        "kafka-python": KafkaPythonProducer,
    }
    for name, producer in classes.items():
        create = partial(producer, workload.bootstrap)
        own.append((f"{name}-idempotent", partial(produce, workload, create, Guarantee.EXACTLY_ONCE)))
        transactional_id = f"{name}-tx"
        create = partial(producer, workload.bootstrap, transactional_id)
        own.append((transactional_id, partial(transact, workload, create, transactional_id)))
    return [*processes(workload), *(partial(instances, workload, name, run) for name, run in own)]


def report(history: History, recoveries: list[float]) -> list[str]:
    """Return lines: of each producer its records, and the time from each recovery to its next acknowledgement.

    Then, how often instances of it ended, and why.
    """
    sends: defaultdict[str, list[Send]] = defaultdict(list)
    for send in history.sends.values():
        sends[send.process.partition(".")[0]].append(send)
    lines = []
    for name, own in sorted(sends.items()):
        acknowledged = sorted(send.completed_ms for send in own if send.is_ok)
        waits = [min((at for at in acknowledged if at > ready), default=math.inf) - ready for ready in recoveries]
        lines.append(
            f"{name}: {len(own)} sent, {len(acknowledged)} acknowledged, in {len({send.process for send in own})} "
            f"instances; next acknowledgement after a median of {statistics.median(waits):.0f} ms, "
            f"at most {max(waits):.0f} ms"
        )
    ends = Counter(
        f"{name.partition('.')[0]} ended: {why}"
        for name, ended, why in (what.partition(" ended: ") for _, what in history.failures)
        if ended
    )
    return [*lines, *(f"{times} x {what}" for what, times in sorted(ends.items()))]


@click.command()
@click.option("--kills", default=25, show_default=True, help="Kills of brokers.")
@click.option("--proxy-kills", default=10, show_default=True, help="Kills of the proxy.")
@click.option("--brokers", type=click.Choice([1, 3]), default=3, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--direct", is_flag=True, help="Without the proxy.")
def main(kills: int, proxy_kills: int, brokers: int, seed: int, direct: bool) -> None:
    """Kill brokers and the proxy, and check the histories of the clients."""
    if (reason := why_not()) is not None:
        raise click.ClickException(f"{BUILD}: {reason}")
    logging.disable()  # clients log thousands of failures
    warnings.simplefilter("ignore")  # clients that could not be stopped
    history = History()
    with tempfile.TemporaryDirectory() as name:
        properties = [*PROPERTIES, *(REPLICATED if brokers > 1 else ())]
        kafka = ApacheKafka(Path(name), brokers, properties=properties, host=UPSTREAM_HOST)
        with running(kafka):
            cluster = Cluster(Path(name), kafka, is_direct=direct)
            try:
                played = play(cluster, history, Random(seed), kills, 0 if direct else proxy_kills)
                # asyncio.run would wait for the threads.
                recoveries = asyncio.new_event_loop().run_until_complete(played)
            except BaseException:
                if cluster.proxy is not None:
                    print(cluster.proxy.log_text()[-_LOG_CHARACTERS:])
                raise
            finally:
                if cluster.proxy is not None:
                    cluster.proxy.kill()
            problems = cluster.unexpected_lines()
    for line in report(history, recoveries):
        print(line)
    for anomaly in (found := anomalies(history)):
        problems.append(f"{anomaly.rule}: {anomaly.text}\n{history.excerpt(anomaly.operations)}")
    print(f"{len(history.sends)} records, {len(found)} anomalies", *problems[:20], sep="\n", flush=True)
    os._exit(1 if problems else 0)  # an exit would wait for threads that kafka-python blocks forever


if __name__ == "__main__":
    main()
