from sluice.client.producer.buffer_pool import BufferPool


def test_available_memory_can_be_allocated() -> None:
    pool = BufferPool(100)
    assert pool.take(60)
    assert not pool.take(41)
    assert pool.take(40)
    pool.give_back(100)
    assert pool.available == 100


def test_waiters_are_served_in_order_when_memory_is_returned() -> None:
    pool = BufferPool(100)
    pool.take(100)
    granted: list[str] = []
    pool.queue(80, lambda: granted.append("large"))
    pool.queue(10, lambda: granted.append("small"))
    assert pool.is_exhausted
    pool.give_back(50)
    assert granted == [], "the first waiter goes first, even if there is room for the second"
    assert not pool.take(10), "a new request does not overtake the waiters"
    pool.give_back(50)
    assert granted == ["large", "small"]
    assert (pool.available, pool.is_exhausted) == (10, False)


def test_cancelled_waiter_lets_the_next_proceed() -> None:
    pool = BufferPool(100)
    pool.take(90)
    granted: list[str] = []
    large = pool.queue(80, lambda: granted.append("large"))
    pool.queue(10, lambda: granted.append("small"))
    pool.leave(large)
    assert granted == ["small"]


def test_waiter_cancelled_after_its_grant_returns_the_memory() -> None:
    pool = BufferPool(100)
    pool.take(100)
    ticket = pool.queue(40, lambda: None)
    pool.give_back(100)
    pool.leave(ticket)
    assert pool.available == 100
