"""The options of a login module."""

import pytest

from sluice.client.jaas import jaas_options

OPTIONS = {
    "quoted": ('M required username="alice" password="a b";', {"username": "alice", "password": "a b"}),
    "other marks": ("M required username='al\"ice' password=secret;", {"username": 'al"ice', "password": "secret"}),
    "escaped": ('M required password="a\\"b;c" ;', {"password": 'a"b;c'}),
}


@pytest.mark.parametrize(("text", "options"), OPTIONS.values(), ids=OPTIONS)
def test_options_of_a_login_module(text: str, options: dict[str, str]) -> None:
    assert jaas_options(text) == options


@pytest.mark.parametrize("text", ["", "M", 'M required username="alice"', 'username="alice";'])
def test_invalid_login_module_is_rejected_without_showing_the_secret(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected MODULE required "):
        jaas_options(text)
