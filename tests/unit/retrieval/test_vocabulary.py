"""Words read all together have the terms that they have one by one."""

import random
from collections import Counter

import pytest

from bot.retrieval.runs import Runs
from bot.retrieval.vocabulary import Vocabulary
from bot.retrieval.words import hash_of, terms_of

ALPHABET = "abcXYZ019__ées \n.-日"


def held(vocabulary: Vocabulary, run: int) -> list[int]:
    """Hashes of the terms of a run."""
    return [int(hashed) for hashed in vocabulary.hashes[vocabulary.starts[run] : vocabulary.starts[run + 1]]]


def expected(text: str) -> Counter[int]:
    return Counter({hash_of(term): times for term, times in terms_of(text).items()})


@pytest.mark.parametrize(
    "text",
    [
        "RateLimiter(x_1)->é—ü",
        "a.b_c 0x1F 12 3ab x1 _Of_ HTTPServer2 ___ __é__ not_it",
        "33abc 7 77 12_3 9_ _9 __ A AB ABc aB1C the The_the x" + "9" * 61 + " " + "9" * 61 + "x",
        "'naïve'—“quoted” 日本語",
        "",
        "_" * 70 + " ok " + "é" * 61 + " " + "a1" * 31 + " " + "b" * 3000,
    ],
)
def test_a_text_counts_the_same_terms_in_runs_as_in_words(text: str):
    vocabulary = Vocabulary()
    numbers = vocabulary.numbers(Runs.within(text.encode()))
    assert Counter(hashed for run in numbers.tolist() for hashed in held(vocabulary, run)) == expected(text)


@pytest.mark.parametrize("seed", range(20))
def test_any_text_counts_the_same_terms_in_runs_as_in_words(seed: int):
    chosen = random.Random(seed)
    vocabulary = Vocabulary()
    for _ in range(10):
        text = "".join(chosen.choices(ALPHABET, k=300))
        numbers = vocabulary.numbers(Runs.within(text.encode()))
        assert Counter(hashed for run in numbers.tolist() for hashed in held(vocabulary, run)) == expected(text)


def test_a_run_keeps_its_number_and_a_new_one_gets_the_next():
    vocabulary = Vocabulary()
    first = vocabulary.numbers(Runs.within(b"one two one")).tolist()
    second = vocabulary.numbers(Runs.within(b"(two) three")).tolist()
    assert first[0] == first[2]
    assert second == [first[1], 2]
    assert len(vocabulary) == 3


def test_a_name_may_hold_anything():
    vocabulary = Vocabulary()
    names = ["first_name", "operator\nnew_thing", "é", "()", "", "LastName", "a\0b"]
    for name, run in zip(names, vocabulary.numbers(Runs.of([name.encode() for name in names])).tolist(), strict=True):
        assert Counter(held(vocabulary, run)) == expected(name)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 15, 16, 17, 40])
def test_runs_of_the_same_bytes_have_the_same_key_and_others_have_not(length: int):
    run = bytes(range(97, 97 + length))
    others = [run + b"\0", run + b"a", *(run[:at] + b"!" + run[at + 1 :] for at in range(length))]
    keys = Runs.of([run, b"before", run, *others]).keys().tolist()
    assert keys[0] == keys[2]
    assert len(set(keys)) == len(others) + 2
