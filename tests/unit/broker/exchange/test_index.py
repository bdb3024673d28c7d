"""The generated index of the served APIs."""

from sluice.broker.exchange.index import INDEX
from sluice.protocol.apis import API_KEYS
from tools import generate


def test_index_of_served_apis_matches_the_handler_headers() -> None:
    indexed = {API_KEYS[key].name: row for key, row in INDEX.items()}
    assert indexed == generate.headers(), "run make generate"
    assert list(INDEX) == sorted(INDEX)


def test_each_handler_module_is_named_after_its_message_module() -> None:
    assert [module.rpartition(".")[2] for module, _ in INDEX.values()] == [API_KEYS[key].module for key in INDEX]
