"""Templates are files beside their stage; what they name must be given."""

from __future__ import annotations

import pytest
from jinja2 import TemplateNotFound, UndefinedError

from bot.prompting import render

SAMPLE = "tests.unit.prompting.sample"


@pytest.mark.parametrize("name", ["list.md.j2", "list"])
def test_a_template_is_filled_without_escaping(name: str):
    assert render(SAMPLE, name, parts=["a & b", "{{ c }}"], last="<x>") == "- a & b\n- {{ c }}\nLast: <x> <b>\n"


def test_a_value_nobody_gave_is_an_error():
    with pytest.raises(UndefinedError):
        render(SAMPLE, "list", parts=[])


def test_a_template_that_is_not_there_is_an_error():
    with pytest.raises(TemplateNotFound):
        render(SAMPLE, "other")
