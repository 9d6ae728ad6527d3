"""Names of consumers: the first rendition's is the writer's, the others have a dot in theirs."""

import pytest

from tidemark.outputs.model.consumer_name import consumer_name, split_consumer
from tidemark.pipeline import checks

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("number", "name"), [(1, "accounts"), (2, "accounts.r2"), (12, "accounts.r12")])
def test_the_consumer_of_a_rendition(number, name):
    assert consumer_name("accounts", number) == name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("accounts", ("accounts", None)),
        ("accounts.r1", ("accounts", 1)),
        ("accounts.r12", ("accounts", 12)),
        ("accounts_r2", ("accounts_r2", None)),
        ("accounts.r0", ("accounts.r0", None)),
        ("a.b.r2", ("a.b.r2", None)),
    ],
)
def test_a_name_that_an_operator_gives(name, parts):
    assert split_consumer(name) == parts


def test_no_writer_in_a_file_can_have_the_name_of_a_consumer():
    with pytest.raises(ValueError, match="Use letters"):
        checks.name(consumer_name("accounts", 2))
