"""A short run of `make fuzz-importer`: no crash, nothing overlooked, nothing outside, and the honest ones accepted."""

from __future__ import annotations

from tests.attacks.conftest import Control
from tests.attacks.fuzz import case, chunk

INPUTS = 2_500
REACHED = {
    "accepted", "checksum", "stale", "content_mismatch", "cut_short", "count_mismatch", "removes_unknown", "special_file",
    "path_length", "path_not_utf8", "path_not_relative", "file_size", "dot_git", "duplicate_path", "path_not_portable",
    "hidden_character", "link_target", "inside_submodule", "unknown_record", "link_escapes", "file_and_directory",
}  # fmt: skip


def test_i01_i02_i11_i12_i13_streams_with_structured_damage(control: Control) -> None:
    outcomes, fooled, wrong = chunk(0, INPUTS)
    assert wrong == []
    control(
        fooled > INPUTS // 4, "a reader that believes lengths and joins paths takes damage for data, or writes outside"
    )
    assert outcomes.keys() >= REACHED, "the inputs reach the rules"
    assert outcomes["accepted"] > INPUTS // 10


def test_the_same_seed_is_the_same_input() -> None:
    assert [case(seed) for seed in range(50)] == [case(seed) for seed in range(50)]
