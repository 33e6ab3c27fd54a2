"""Only a plain line of a plain paragraph commands; everything doubtful does nothing or is asked again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bot
from bot.domain.action import Command, Verb
from bot.prompting import publishable
from bot.stages.intake.commands import LONGEST_ARGUMENT, CommandFault, find_command

HASH = "0123456789ab"


@pytest.mark.parametrize(
    ("body", "command"),
    [
        ("/agent", Command(Verb.HELP)),
        ("/agent ", Command(Verb.HELP)),
        ("/agent help", Command(Verb.HELP)),
        ("/agent run", Command(Verb.RUN)),
        ("/agent run\r\n", Command(Verb.RUN)),
        ("/agent  fix   the sum ", Command(Verb.FIX, "the sum")),
        ("/agent fix `foo()` and [it](x)", Command(Verb.FIX, "`foo()` and [it](x)")),
        ("/agent fix the sum\nof *lists*\n\n- too", Command(Verb.FIX, "the sum\n\nof *lists*\n\n- too")),
        ("Thanks!\n\n/agent retry", Command(Verb.RETRY, "Thanks!")),
        ("Thanks\n/agent stop\nnow", Command(Verb.STOP)),
        ("a  \n/agent stop", Command(Verb.STOP)),
        ("/agent stop\n\n/agent  stop", Command(Verb.STOP)),
        ("> /agent merge x\n\n/agent status", Command(Verb.STATUS)),
        ("/agent plan", Command(Verb.PLAN)),
        (f"/agent approve {HASH}", Command(Verb.APPROVE, HASH)),
        (f"/agent merge {HASH * 5}0123", Command(Verb.MERGE, HASH * 5 + "0123")),
        (
            f"/agent approve allow:binary {HASH} allow:work-flows allow:binary",
            Command(Verb.APPROVE, HASH, ("binary", "work-flows")),
        ),
        ("/agent fix the ❤️ and 👩‍💻 icons", Command(Verb.FIX, "the ❤ and 👩💻 icons")),
    ],
)
def test_a_command_is_read(body: str, command: Command):
    assert find_command(body) == command


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no command",
        "please /agent run",
        " /agent run",
        "/Agent run",
        "/AGENT run",
        "/agentrun",
        "/agents run",
        "/agent\trun",
        "／agent run",
        "> /agent run",
        "> quoted\n/agent run",
        "> /agent merge\n\nmy reply",
        "- item\n/agent run",
        "- /agent run",
        "1. /agent run",
        "# /agent run",
        "/agent run\n===",
        "/agent run\n---",
        "    /agent run",
        "\t/agent run",
        "```\n/agent run\n```",
        "~~~\n/agent run",
        "```\n/agent run",
        "`/agent run`",
        "`code\n/agent run\n`",
        "**a\n/agent run**",
        "[a\n/agent run](x)",
        "[a\n/agent run][r]\n\n[r]: x",
        "![a\n/agent run](x)",
        "<!--\n/agent run\n-->",
        "<div>\n/agent run\n</div>",
        "<details><summary>x</summary>\n/agent run\n</details>",
        "<a title='\n/agent run'>",
        "text <!--\n/agent run\n-->",
        "| a |\n|---|\n/agent run",
        "[r]: x\n'\n/agent run\n'",
        "\\/agent run",
        "&#47;agent run",
        "/&#97;gent run",
        "/agent`run`",
        "/agent*run*",
    ],
)
def test_what_is_quoted_coded_hidden_or_misspelt_is_no_command(body: str):
    assert find_command(body) is None


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("/agent run\n/agent stop", CommandFault("several")),
        ("/agent run\n\ntext\n\n/agent fix x", CommandFault("several")),
        (f"/agent merge {HASH}\n/agent merge {HASH}0", CommandFault("several")),
        ("\u200b/agent run", CommandFault("invisible")),
        ("/ag\u200bent run", CommandFault("invisible")),
        ("/agent run\u202e", CommandFault("invisible")),
        ("/agent fix\U000e0041 x", CommandFault("invisible")),
        (f"/agent approve {HASH}\u200d", CommandFault("invisible")),
        ("/agent fix a\ufe0f", CommandFault("invisible")),
        ("/agent frobnicate now", CommandFault("unknown", "frobnicate")),
        ("/agent please fix it", CommandFault("unknown", "please")),
        ("/agent Run", CommandFault("unknown", "Run")),
        ("/agent " + "x" * 100, CommandFault("unknown", "x" * 40)),
        ("/agent fix " + "x" * LONGEST_ARGUMENT, CommandFault("too_long", "fix")),
        ("word " * 1000 + "\n/agent run", CommandFault("too_long")),
        ("/agent stop it", CommandFault("extra_words", "stop")),
        ("/agent approve", CommandFault("needs_hash", "approve")),
        ("/agent approve 0123456789a", CommandFault("needs_hash", "approve")),
        (f"/agent approve {'0' * 65}", CommandFault("needs_hash", "approve")),
        (f"/agent approve {HASH.upper()}", CommandFault("needs_hash", "approve")),
        (f"/agent approve `{HASH}`", CommandFault("needs_hash", "approve")),
        (f"/agent approve {HASH} {HASH}", CommandFault("needs_hash", "approve")),
        (f"/agent merge {HASH} now", CommandFault("needs_hash", "merge")),
        (f"/agent merge {HASH} allow:", CommandFault("needs_hash", "merge")),
        (f"/agent merge {HASH} allow:X", CommandFault("needs_hash", "merge")),
        (f"/agent merge {HASH} " + " ".join(f"allow:f{n}" for n in range(21)), CommandFault("needs_hash", "merge")),
    ],
)
def test_what_is_doubtful_is_a_fault(body: str, fault: CommandFault):
    assert find_command(body) == fault


@pytest.mark.parametrize(
    "body",
    [
        "[\n" * 30_000 + "\n/agent run",
        "/agent run\n" * 6_000,
        "*a " * 20_000 + "\n\n/agent run",
        "> " * 30_000 + "/agent run",
    ],
)
def test_hostile_comments_are_answered_in_time(body: str):
    find_command(body)


def _texts_of(source: str) -> Iterator[str]:
    """Every literal of a module, f-strings with a word in each gap."""
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "word" for part in node.values)  # type: ignore[misc]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


OUR_TEXTS = sorted(Path(bot.__file__).parent.rglob("texts.py"))


@pytest.mark.parametrize("path", OUR_TEXTS, ids=lambda path: path.parent.name)
def test_our_own_texts_command_nothing(path: Path):
    for text in _texts_of(path.read_text()):
        for each in (text, f"{text}\n", *text.splitlines()):
            assert find_command(each) is None, each
            assert "\n/agent" not in f"\n{each}", each


PARTS = st.sampled_from(
    [
        "/agent run",
        "/agent stop",
        "/agent",
        " ",
        "\n",
        "\n\n",
        "> ",
        "- ",
        "`",
        "```\n",
        "x",
        "&#47;agent run",
        "\\",
        "<b>",
        "|",
    ]
)


@settings(max_examples=80, deadline=None)
@given(st.lists(PARTS, max_size=25).map("".join))
def test_what_we_publish_commands_nothing(text: str):
    assert find_command(publishable(text)) is None


@given(st.text())
def test_no_text_makes_it_raise(text: str):
    find_command(text)
    find_command(f"/agent {text}")
