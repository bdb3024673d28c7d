"""A small Streams runtime on this project's client, for KIP-572: sources, processors, sinks, keyed stores.

    async with Streams(topology, {"application.id": "word-count", "bootstrap.servers": "127.0.0.1:9092"}) as streams:
        await streams.run()

Start reading at `thread`, the loop.
"""
