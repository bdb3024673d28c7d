"""The registry of APIs."""

import pytest

from sluice.protocol.apis import API_KEYS, Api, ApiKey, api_of


@pytest.mark.parametrize("api", API_KEYS.values(), ids=lambda api: api.name)
def test_request_and_response_are_those_of_the_api(api: Api) -> None:
    assert API_KEYS[api.key] is api_of(api.request) is api_of(api.response) is api
    assert (api.request.__name__, api.response.__name__) == (f"{api.name}Request", f"{api.name}Response")


def test_keys_are_in_order() -> None:
    assert list(API_KEYS) == sorted(API_KEYS)


HEADERS = {
    "the last classic version": (ApiKey.PRODUCE, 8, 1, 0),
    "the first flexible version": (ApiKey.PRODUCE, 9, 2, 1),
    "an ApiVersions response, which any client must read": (ApiKey.API_VERSIONS, 4, 2, 0),
}


@pytest.mark.parametrize(("key", "version", "request_header", "response_header"), HEADERS.values(), ids=HEADERS)
def test_header_versions(key: int, version: int, request_header: int, response_header: int) -> None:
    api = API_KEYS[key]
    assert api.request_header_version(version) == request_header
    assert api.response_header_version(version) == response_header


def test_only_init_producer_id_has_an_unstable_version() -> None:
    assert [api.name for api in API_KEYS.values() if api.latest_unstable] == ["InitProducerId"]


@pytest.mark.parametrize(
    ("key", "first"),
    [
        pytest.param(ApiKey.PRODUCE, 1, id="Produce"),
        pytest.param(ApiKey.API_VERSIONS, 1, id="ApiVersions"),
        (11, 2),
        (19, 2),
        (12, 1),
    ],
)
def test_first_version_with_a_throttle_time(key: int, first: int) -> None:
    api = API_KEYS[key]
    versions = [version for version in range(api.max_version + 1) if api.has_throttle_time(version)]
    assert versions == list(range(first, api.max_version + 1))


def test_responses_without_a_throttle_time() -> None:
    assert not any(API_KEYS[36].has_throttle_time(version) for version in range(3))
