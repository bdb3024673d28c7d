"""The generated indexes: served APIs, from the headers of the handlers, and all APIs."""

from sluice.broker.exchange.index import INDEX
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.index import INDEX as API_INDEX
from tools import generate


def test_index_of_served_apis_matches_the_handler_headers() -> None:
    indexed = {API_KEYS[key].name: row for key, row in INDEX.items()}
    assert indexed == generate.headers(), "run make generate"
    assert list(INDEX) == sorted(INDEX)


def test_index_of_all_apis_matches_the_message_classes() -> None:
    assert generate.message_rows() == API_INDEX, "run make generate"
    numbers = [number for name, number in vars(ApiKey).items() if name.isupper()]
    assert numbers == list(API_INDEX)


def test_each_handler_module_is_named_after_its_message_module() -> None:
    assert [module.rpartition(".")[2] for module, _ in INDEX.values()] == [API_KEYS[key].module for key in INDEX]
