"""Phrases in sentences: nouns with their articles, and lists."""

import pytest

from adapt.core.phrases import listed, with_article


@pytest.mark.parametrize(
    ("noun", "said"), [("elastic run", "an elastic run"), ("plan", "a plan"), ("FIT run", "a FIT run")]
)
def test_a_noun_has_its_article(noun, said):
    assert with_article(noun) == said


def test_a_list_ends_with_and():
    assert [listed(each) for each in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
