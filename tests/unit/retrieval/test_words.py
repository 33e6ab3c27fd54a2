"""Words of code and prose meet."""

import pytest

from bot.retrieval.words import stem, terms, terms_of, whole


def test_an_identifier_is_found_by_its_parts_and_whole():
    assert terms("RateLimiterHTTP") == ("rate", "limiter", "http", "ratelimiterhttp")
    assert set(terms_of("rate limiter")) < set(terms("rate_limiter"))
    assert terms("name_7") == ("name", "name_7")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("files", "file"),
        ("queries", "query"),
        ("parsing", "parse"),
        ("stopped", "stop"),
        ("classes", "class"),
        ("raised", "raise"),
    ],
)
def test_endings_of_english_are_taken_off(one: str, other: str):
    assert stem(one) == stem(other)


@pytest.mark.parametrize("word", ["status", "class", "this", "analysis", "es", "bed"])
def test_words_that_only_look_like_plurals_stay(word: str):
    assert stem(word) == word


def test_data_is_no_word():
    assert terms("a" * 100) == ()


@pytest.mark.parametrize("name", ["RateLimiter", "rate_limiter", "files", "__slots__", "HTTP", "größe", "sha256"])
def test_the_whole_of_a_name_is_its_last_term(name: str):
    assert whole(name) == terms(name)[-1]
