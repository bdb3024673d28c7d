"""Examples for other clients, and the properties file.

The examples of sluice's client and of Spark have their own tests: tests/unit/sluice/{client,streams}, tests/spark.
"""

import subprocess
import sys
from pathlib import Path

from sluice import SyncBroker
from sluice.config.broker_config import Config
from tests.support.broker_process import CLEAN_ENVIRONMENT

EXAMPLES = Path(__file__).parents[2] / "examples"
TESTS = {
    "consumer.py": "tests/docs/test_examples.py",
    **{
        f"explore/{file.name}": "tests/integration/sluice/explore/test_gallery.py"
        for file in (EXAMPLES / "explore").glob("*.py")
    },
    "own_broker.py": "tests/integration/test_examples.py",
    "producer.py": "tests/docs/test_examples.py",
    "reference_consumer.py": "tests/unit/sluice/client/test_reference_examples.py",
    "reference_producer.py": "tests/unit/sluice/client/test_reference_examples.py",
    "server.properties": "tests/docs/test_examples.py",
    "spark_batch_read.py": "tests/spark/test_examples.py",
    "spark_steady_stream.py": "tests/spark/test_examples.py",
    "spark_through_a_restart.py": "tests/spark/test_examples.py",
    "spark_word_count.py": "tests/spark/test_examples.py",
    "word_count.py": "tests/unit/sluice/streams/test_word_count_example.py",
}


def test_each_example_has_a_test() -> None:
    files = {str(file.relative_to(EXAMPLES)) for file in EXAMPLES.glob("**/*") if file.suffix in (".py", ".properties")}
    assert files == TESTS.keys()
    assert [test for test in TESTS.values() if not (EXAMPLES.parent / test).is_file()] == []


def _printed(name: str, broker: SyncBroker) -> list[str]:
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / name), broker.bootstrap]
    done = subprocess.run(command, env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_consumer_reads_the_records_of_the_producer() -> None:
    with SyncBroker() as broker:
        printed = _printed("producer.py", broker)
        assert [line.partition(" MB after ")[0].strip() for line in printed] == [str(number) for number in range(1, 16)]
        assert _printed("consumer.py", broker)[-1] == "150 records, 15.0 MB"


def test_properties_file_is_valid() -> None:
    config = Config.load(EXAMPLES / "server.properties")
    assert config.rates("quota.producer.override") == {"gold": 4e6}
    assert [str(endpoint) for endpoint in config.listeners()] == ["127.0.0.1:9092"]
