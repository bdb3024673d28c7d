import sys

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kafka
from bytewax.dataflow import Dataflow
from bytewax.testing import run_main

bootstrap, source, target, _ = sys.argv[1:]
flow = Dataflow("shout")
records = kafka.input("in", flow, brokers=[bootstrap], topics=[source], tail=False)
shouted = op.map("shout", records.oks, lambda record: KafkaSinkMessage(record.key, record.value.upper()))
kafka.output("out", shouted, brokers=[bootstrap], topic=target)
run_main(flow)
