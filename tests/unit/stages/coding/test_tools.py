import json

import pytest

from bot.stages.coding.log import ToolAnswer, tool_answers, user_text
from bot.stages.coding.tools import TOOLS_JSON, Edit, Read, parse


def test_the_tools_are_few_and_their_order_is_fixed():
    assert [tool["name"] for tool in json.loads(TOOLS_JSON)] == ["search", "read", "edit", "run", "finish"]


def test_every_tool_of_the_list_has_a_checked_input():
    for tool in json.loads(TOOLS_JSON):
        assert isinstance(parse(tool["name"], "{}"), str)


def test_good_arguments_become_values():
    assert parse("read", '{"path": "a.py", "first": 3}') == Read(path="a.py", first=3)
    assert parse("edit", '{"path": "a", "old": "", "new": "x"}') == Edit(path="a", old="", new="x")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", "not json"),
        ("read", "[]"),
        ("read", '{"path": ""}'),
        ("read", '{"path": "a", "first": 0}'),
        ("read", '{"path": "a", "more": 1}'),
        ("run", '{"command": "ls", "seconds": 99999}'),
        ("destroy", "{}"),
    ],
)
def test_bad_arguments_become_a_sentence_for_the_model(name: str, arguments: str):
    answer = parse(name, arguments)
    assert isinstance(answer, str)
    assert name in answer


def test_messages_are_frozen_json_with_results_in_the_order_of_the_calls():
    message = tool_answers((ToolAnswer("a", "one"), ToolAnswer("b", "", is_error=True)))
    content = json.loads(message.json)["content"]
    assert [block["tool_use_id"] for block in content] == ["a", "b"]
    assert content[1]["is_error"] is True
    assert content[1]["content"][0]["text"]
    assert user_text("ü").json == '{"role":"user","content":[{"type":"text","text":"ü"}]}'
