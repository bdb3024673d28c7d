from sluice.client.producer.buffer_pool import BufferPool


def test_what_is_there_can_be_taken() -> None:
    pool = BufferPool(100)
    assert pool.take(60)
    assert not pool.take(41)
    assert pool.take(40)
    pool.give_back(100)
    assert pool.available == 100


def test_who_waits_gets_it_in_turn_when_it_is_there() -> None:
    pool = BufferPool(100)
    pool.take(100)
    granted: list[str] = []
    pool.queue(80, lambda: granted.append("large"))
    pool.queue(10, lambda: granted.append("small"))
    assert pool.is_exhausted
    pool.give_back(50)
    assert granted == [], "the first in the queue goes first, though there is room for the second"
    assert not pool.take(10), "and nobody goes before both"
    pool.give_back(50)
    assert granted == ["large", "small"]
    assert (pool.available, pool.is_exhausted) == (10, False)


def test_who_leaves_lets_the_next_go_on() -> None:
    pool = BufferPool(100)
    pool.take(90)
    granted: list[str] = []
    large = pool.queue(80, lambda: granted.append("large"))
    pool.queue(10, lambda: granted.append("small"))
    pool.leave(large)
    assert granted == ["small"]


def test_who_leaves_after_it_was_granted_gives_it_back() -> None:
    pool = BufferPool(100)
    pool.take(100)
    ticket = pool.queue(40, lambda: None)
    pool.give_back(100)
    pool.leave(ticket)
    assert pool.available == 100
