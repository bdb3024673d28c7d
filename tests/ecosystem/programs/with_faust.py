import sys

import faust

bootstrap, source, target, folder = sys.argv[1:]
app = faust.App(
    "faust", broker=f"kafka://{bootstrap}", store="memory://", datadir=folder, topic_partitions=1, web_enabled=False
)
given = app.topic(source, value_type=bytes, value_serializer="raw")
shouted = app.topic(target, value_type=bytes, value_serializer="raw")
counts = app.Table("counts", default=int)  # with a changelog topic


@app.agent(given, sink=[shouted])
async def shout(values):
    async for value in values:
        counts["seen"] += 1
        yield value.upper()


sys.argv[1:] = ["worker", "--loglevel", "info"]
app.main()
