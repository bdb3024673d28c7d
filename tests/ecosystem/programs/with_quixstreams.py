import sys
from time import sleep

from quixstreams import Application

bootstrap, source, target, folder = sys.argv[1:]
app = Application(
    broker_address=bootstrap,
    consumer_group="quix",
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    commit_interval=0.2,
    state_dir=folder,
    consumer_extra_config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 500},
)


def shout(value: str) -> str:
    sleep(0.01)
    return value.upper()


records = app.dataframe(app.topic(source, value_deserializer="str"))
records.apply(shout).to_topic(app.topic(target, value_serializer="str"))
app.run()
