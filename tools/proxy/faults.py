"""The campaign `proxy-faults`: every fault that a proxy supports, with the Python clients, which react as to a broker.

The cases and their expected results are those of `tests/clients/fault_cases.py`. The brokers behind the proxy are ours,
or with --upstream one broker of Apache Kafka, for the cases with one broker; some sessions are short, so it needs
`group.min.session.timeout.ms=100`.
"""

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from sluice import SyncProxy
from sluice.broker.faults.actions import KINDS
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.proxy.properties import acts_in_proxy
from tests.clients.fault_cases import CASES
from tests.clients.fault_clients import FAULT_CLIENTS, PARTITION, TOPIC
from tests.clients.fault_runs import Case, Site, own_brokers, run, values_of
from tests.clients.test_faults import problems
from tests.support.wire import WireClient

_FETCH_VERSION = 11  # the last one without topic ids
_LARGEST = 1 << 30


@contextmanager
def in_front_of_ours(case: Case) -> Iterator[Site]:
    own = {name: value for name, value in case.config.items() if acts_in_proxy(name)}
    behind = case._replace(config={name: value for name, value in case.config.items() if name not in own})
    with own_brokers(behind) as site, SyncProxy(site.broker.bootstrap, config=own) as proxy:
        yield Site(proxy, site.broker, site.values)


@contextmanager
def in_front_of(bootstrap: str, case: Case) -> Iterator[Site]:
    own = {name: value for name, value in case.config.items() if acts_in_proxy(name)}
    with SyncProxy(bootstrap, config=own) as proxy, SyncProxy(bootstrap) as cleaner:  # deletes the topic
        cleaner.cluster.create_topic(TOPIC, partitions=1)
        yield Site(proxy, proxy, partial(_values, bootstrap))


def _values(bootstrap: str) -> Counter[str]:
    partition = FetchPartition(partition=PARTITION, partition_max_bytes=_LARGEST)
    request = FetchRequest(replica_id=-1, max_bytes=_LARGEST, topics=[FetchTopic(topic=TOPIC, partitions=[partition])])
    with WireClient(bootstrap) as client:
        response = client.call(request, _FETCH_VERSION)
    return values_of(bytes(response.responses[0].partitions[0].records or b""))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream", help="a broker of Apache Kafka, instead of ours: HOST:PORT")
    parser.add_argument("--case", default="", help="part of the title of the cases to run")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # errors are expected
    failures = 0
    for title, case in CASES.items():
        if arguments.case not in title or KINDS[case.kind].PROXY_REFUSAL:
            continue
        if arguments.upstream and case.brokers > 1:
            continue
        if arguments.upstream:
            found = [run(client, case, partial(in_front_of, arguments.upstream)) for client in FAULT_CLIENTS]
        else:
            with ThreadPoolExecutor(len(FAULT_CLIENTS)) as pool:
                found = [*pool.map(lambda client, case=case: run(client, case, in_front_of_ours), FAULT_CLIENTS)]
        wrong = [
            line for client, one in zip(FAULT_CLIENTS, found, strict=True) for line in problems(case, client.name, one)
        ]
        failures += bool(wrong)
        print(f"{case.kind}: {title}: {'; '.join(wrong) or 'as on a broker'}", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
