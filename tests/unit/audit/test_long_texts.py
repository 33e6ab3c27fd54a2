"""Texts that are made to take a regular expression's time: everything here ends, or the test run does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.audit import gitconfig, instructions, people, workflows
from bot.audit.facts import WorkingCopy
from bot.providers.organisation.port import Post, Read
from tests.unit.audit.builders import HOME, facts, snapshot, with_file

LENGTH = 50_000


@pytest.mark.parametrize(
    "part", ["https://", "curl ", "follow instructions ", "https://x and ", "allowed-tools:", "upload", "![", "read "]
)
def test_instructions_and_posts(part: str):
    text = part * (LENGTH // len(part))
    list(instructions.check(snapshot(with_file("AGENTS.md", text))))
    said = facts(repository=replace(HOME, private=False), posts=Read((Post("x", "pullwright[bot]", text[:65_536]),)))
    list(people.check_posts(snapshot(said)))


@pytest.mark.parametrize(
    "part", ["git fetch ", "${{", "${{ github.event.commits", "github.event.pages", "['a']", "secrets["]
)
def test_workflows(part: str):
    text = part * (LENGTH // len(part))
    file = f'on: pull_request_target\njobs: {{a: {{steps: [{{run: "{text}", env: {{A: "{text}"}}}}]}}}}\n'
    list(workflows.check(snapshot(with_file(".github/workflows/x.yml", file))))


@pytest.mark.parametrize("depth", [500, 990, 5_000])
def test_settings_in_settings(depth: int):
    text = '{"a": ' * depth + "1" + "}" * depth
    list(instructions.check(snapshot(with_file(".mcp.json", text))))


@pytest.mark.parametrize("part", ["[a]", '[a "', "\\\n", "a\\\n", " ", '"'])
def test_git_configs(part: str):
    copy = WorkingCopy("/x", (("config", Read(part * (LENGTH // len(part)))),))
    list(gitconfig.check(snapshot(copies=(copy,))))
