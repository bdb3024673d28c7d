"""Many producers of confluent-kafka in one process: BOOTSTRAP TOPIC PARTITIONS CLIENTS PERIOD_S SEED NAME=VALUE...

Prints `ready` when all have sent a record, starts to send at the rate after a line of input, and stops after another.
"""

import sys
import threading
import time
from random import Random

from confluent_kafka import Producer


def main() -> None:
    bootstrap, topic, partitions, clients, period, seed, *settings = sys.argv[1:]
    config = dict(each.split("=", 1) for each in settings)
    random = Random(int(seed))
    producers = []
    for index in range(int(clients)):
        producers.append(
            Producer({"bootstrap.servers": bootstrap, "client.id": f"client-{index}", "log_level": 0, **config})
        )
        time.sleep(float(period) / int(clients))  # librdkafka's timers start with the client
    for index, producer in enumerate(producers):
        producer.produce(topic, b"", partition=index % int(partitions))
    for producer in producers:
        producer.flush()
    print("ready", flush=True)
    sys.stdin.readline()
    stopped = threading.Event()

    def await_end() -> None:
        sys.stdin.readline()
        stopped.set()

    threading.Thread(target=await_end, daemon=True).start()
    began = time.monotonic()
    due = sorted((began + random.random() * float(period), index) for index in range(len(producers)))
    while not stopped.is_set():
        at, index = due.pop(0)
        stopped.wait(max(at - time.monotonic(), 0))
        producers[index].produce(topic, b"", partition=index % int(partitions))
        producers[index].poll(0)
        due.append((at + float(period), index))


if __name__ == "__main__":
    main()
