"""The index of the APIs that are served, which is generated from the headers of the handlers."""

from sluice.broker.dispatch.index import INDEX
from sluice.protocol.apis import API_KEYS
from tests import generate


def test_the_index_is_that_of_the_headers() -> None:
    indexed = {API_KEYS[key].name: row for key, row in INDEX.items()}
    assert indexed == generate.headers(), "run make generate"
    assert list(INDEX) == sorted(INDEX)


def test_each_handler_is_the_twin_of_its_messages_module() -> None:
    assert [module.rpartition(".")[2] for module, _ in INDEX.values()] == [API_KEYS[key].module for key in INDEX]
