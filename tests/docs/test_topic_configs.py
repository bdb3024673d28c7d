"""docs/topic-configs.md is up to date with the code."""

from tests.docs.topic_configs import PAGE, with_table


def test_page_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert page == with_table(page), "run python -m tests.docs.topic_configs"
