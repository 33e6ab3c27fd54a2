"""Words of code and prose meet."""

from collections import Counter

import pytest

from bot.retrieval.words import Vocabulary, hash_of, separated, stem, terms, terms_of, whole


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


@pytest.mark.parametrize(
    "text",
    [
        "RateLimiter(x_1)->é—ü",
        "a.b_c 0x1F 12 3ab x1 _Of_ HTTPServer2 ___ __é__ not_it",
        "'naïve'—“quoted” 日本語",
        "",
        "_" * 70 + " ok " + "é" * 61 + " " + "a1" * 31,
    ],
)
def test_a_vocabulary_of_runs_counts_the_same_terms_as_the_text(text: str):
    vocabulary = Vocabulary()
    runs = [vocabulary[run] for run in separated(text.encode()).split()]
    starts, hashes = vocabulary.starts(), vocabulary.hashes()
    counted = Counter(hashed for run in runs for hashed in hashes[starts[run] : starts[run + 1]].tolist())
    assert counted == Counter({hash_of(term): times for term, times in terms_of(text).items()})


def test_a_vocabulary_that_is_asked_between_runs_gives_each_run_its_own_terms():
    vocabulary = Vocabulary()
    for name in ("first_name", "operator\nnew_thing", "é", "()", "LastName"):  # a name may hold a line break
        run = vocabulary[name.encode()]
        held = vocabulary.hashes()[vocabulary.starts()[run] : vocabulary.starts()[run + 1]].tolist()
        assert sorted(held) == sorted(hash_of(term) for term, times in terms_of(name).items() for _ in range(times))
