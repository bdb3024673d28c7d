"""A small Streams runtime on our own client, to be read beside KIP-572: sources, processors, sinks, keyed stores.

    async with Streams(topology, {"application.id": "word-count", "bootstrap.servers": "127.0.0.1:9092"}) as streams:
        await streams.run()

`topology` says what is computed, `streams` runs it; `thread` has the loop. What happens when a client's call takes too
long is in `task_timeout` for tasks, `global_table` for global tables, and `internal_topics` for a group's leader.
"""
