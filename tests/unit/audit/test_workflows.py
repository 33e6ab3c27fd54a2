"""A8: each rule on a workflow that breaks it, and beside it one that does not."""

from __future__ import annotations

import pytest

from bot.audit.findings import Severity
from bot.audit.workflows import check
from bot.providers.organisation.port import Read
from tests.unit.audit.builders import facts, snapshot, with_file

SHA = "a" * 40
PINNED = f"- uses: actions/checkout@{SHA}\n        with: {{persist-credentials: false}}"


def workflow(steps: str, on: str = "pull_request", **job: str) -> str:
    rest = "".join(f"    {name}: {value}\n" for name, value in job.items())
    return f"on: {on}\njobs:\n  test:\n{rest}    steps:\n      {steps}\n"


def found(text: str | None, path: str = ".github/workflows/x.yml", fault: str = "") -> list[tuple[Severity, str]]:
    return [(one.severity, one.evidence) for one in check(snapshot(with_file(path, text, fault)))]


CLEAN = [
    workflow(PINNED),
    workflow(f"- uses: octo/x/deep/path@{SHA}"),
    workflow("- uses: ./.github/actions/own"),
    workflow(f"- uses: docker://alpine@sha256:{'a' * 64}"),
    f"on: push\njobs:\n  call: {{uses: octo/x/.github/workflows/y.yml@{SHA}}}\n",
    workflow("- run: echo ${{ github.event.pull_request.number }} ${{ github.sha }} ${{ github.actor }}"),
    workflow("- run: echo \"$T\"\n        env: {T: '${{ github.event.issue.title }}'}", on="issues"),
    workflow("- run: echo ${{ env.SAFE }}\n        env: {SAFE: x, T: '${{ github.head_ref }}'}"),
    workflow("- run: make\n        env: {T: '${{ secrets.GITHUB_TOKEN }}'}", on="push"),
    workflow("- run: make\n        env: {T: '${{ secrets.KEY }}'}", on="{push: {branches: [main]}}"),
    workflow("- run: make\n        env: {T: '${{ secrets.KEY }}'}", on="{push: {tags: ['v*']}}"),
    workflow("- run: make\n        env: {T: '${{ secrets.KEY }}'}", on="{push: {branches-ignore: ['agent/**']}}"),
    workflow("- run: make\n        env: {T: '${{ secrets.KEY }}'}", on="{pull_request: {branches: [release]}}"),
    workflow(f"{PINNED}", on="pull_request_target"),
    workflow(
        f"- uses: actions/checkout@{SHA}\n        with: {{ref: main, persist-credentials: 'false'}}", on="workflow_run"
    ),
    "",
]


@pytest.mark.parametrize("text", CLEAN[:-1])
def test_a_tidy_workflow_is_silent(text: str):
    assert found(text) == []


@pytest.mark.parametrize(
    ("uses", "told"),
    [
        ("actions/setup-python@v5", True),
        ("actions/setup-python@main", True),
        (f"actions/setup-python@{SHA[:12]}", True),
        (f"actions/setup-python@{SHA.upper()}", True),
        ("actions/setup-python", True),
        ("docker://alpine:3", True),
        (f"docker://alpine@{SHA}", True),
        (f"actions/setup-python@{SHA}", False),
        (f"actions/setup-python@{'b' * 64}", False),
    ],
)
def test_only_a_whole_commit_id_is_a_pin(uses: str, told: bool):
    assert [severity for severity, _ in found(workflow(f"- uses: {uses}"))] == [Severity.MEDIUM] * told


def test_reusable_workflows_and_composite_actions_are_looked_at_too():
    (called,) = found("on: push\njobs:\n  call: {uses: octo/x/.github/workflows/y.yml@v1}\n")
    assert called == (Severity.MEDIUM, "job call uses octo/x/.github/workflows/y.yml@v1: not a whole commit id")
    action = "runs:\n  using: composite\n  steps:\n    - uses: octo/x@v1\n    - run: echo ${{ github.head_ref }}\n"
    assert [severity for severity, _ in found(action, "tools/action.yml")] == [Severity.MEDIUM, Severity.HIGH]
    assert found(action, "tools/other.yml") == []


@pytest.mark.parametrize("on", ["pull_request_target", "[push, workflow_run]", "{issue_comment: {types: [created]}}"])
@pytest.mark.parametrize(
    "step",
    [
        f"- uses: actions/checkout@{SHA}\n        with: {{ref: '${{{{ github.event.pull_request.head.sha }}}}', persist-credentials: false}}",
        f'- uses: actions/checkout@{SHA}\n        with: {{ref: "refs/pull/${{{{ github.event.number }}}}/merge", persist-credentials: false}}',
        f"- uses: actions/checkout@{SHA}\n        with: {{ref: \"${{{{ github['event']['workflow_run']['head_sha'] }}}}\", persist-credentials: false}}",
        "- run: gh pr checkout 7",
        "- run: git fetch origin pull/7/head",
    ],
)
def test_a_head_in_a_privileged_run_is_found(on: str, step: str):
    assert [severity for severity, what in found(workflow(step, on=on)) if "checks out the head" in what] == [
        Severity.HIGH
    ]
    assert [what for _, what in found(workflow(step)) if "checks out the head" in what] == []


@pytest.mark.parametrize(
    "expression",
    [
        "github.event.issue.title",
        "github.event.comment.body",
        "github.event.pull_request.head.ref",
        "GitHub.Event.Review.Body",
        "github.head_ref",
        "github['event']['pull_request']['body']",
        "format('{0}', github.event.head_commit.message)",
        "github.event.commits[0].author.name",
        "toJSON(github.event)",
        "github.event.workflow_run.head_branch",
    ],
)
def test_text_of_an_event_in_a_script_is_found(expression: str):
    (one,) = found(workflow(f'- run: "echo ${{{{ {expression} }}}}"', on="issues"))
    assert one[0] is Severity.HIGH
    script = f'- uses: actions/github-script@{SHA}\n        with: {{script: "x(${{{{ {expression} }}}})"}}'
    assert [severity for severity, _ in found(workflow(script, on="issues"))] == [Severity.HIGH]


def test_a_variable_that_holds_text_of_an_event_does_not_wash_it():
    text = workflow("- run: echo ${{ env.TITLE }}", env="{TITLE: '${{ github.event.issue.title }}'}", on="issues")
    assert [severity for severity, _ in found(text)] == [Severity.HIGH]


@pytest.mark.parametrize(
    ("on", "event"),
    [
        ("push", "push"),
        ("[pull_request]", "pull_request"),
        ("{push: {branches: ['**']}}", "push"),
        ("{push: {branches: [main, 'agent/*']}}", "push"),
        ("{push: {paths: [src/**]}}", "push"),
        ("{pull_request: {branches: [main]}}", "pull_request"),
        ("create", "create"),
    ],
)
@pytest.mark.parametrize("secret", ["secrets.KEY", "secrets['KEY']", "toJSON(secrets)"])
def test_secrets_in_the_reach_of_the_bots_branches_are_named(on: str, event: str, secret: str):
    (one,) = found(workflow(f'- run: make\n        env: {{T: "${{{{ {secret} }}}}"}}', on=on))
    assert one[0] is Severity.HIGH
    assert one[1].startswith(f"{event} runs it on agent/* before anybody approved, with ")


def test_inherited_secrets_are_all_of_them():
    (one,) = found(f"on: push\njobs:\n  call: {{uses: octo/x/.github/workflows/y.yml@{SHA}, secrets: inherit}}\n")
    assert "every secret (inherit)" in one[1]


def test_credentials_that_stay_are_low():
    text = workflow(f"- uses: actions/checkout@{SHA}")
    assert [severity for severity, _ in found(text)] == [Severity.LOW]


@pytest.mark.parametrize("text", ["a: [", "- 1\n- 2\n", "", "x: !!python/object:os.system {}\n", "a: &a [*a"])
def test_what_is_no_workflow_is_unknown(text: str):
    assert [severity for severity, _ in found(text)] == [Severity.UNKNOWN]


def test_what_was_not_read_is_unknown():
    assert found(None, fault="502 Bad Gateway") == [(Severity.UNKNOWN, "could not be read: 502 Bad Gateway")]
    assert found(None) == [(Severity.UNKNOWN, "could not be read: it was not read")]
    listing = snapshot(facts(files=Read((), "GitHub lists only a part of this tree")))
    assert [one.severity for one in check(listing)] == [Severity.UNKNOWN]


def test_a_workflow_of_odd_shape_is_judged_and_does_not_break():
    text = "on: {push: 3}\njobs: {a: {steps: [1, {uses: 2}, {run: [x]}], env: 4}, b: 5}\nenv: [1]\n"
    assert [severity for severity, _ in found(text)] == [Severity.MEDIUM]
    assert found("on: 3\njobs: []\n") == []
    bomb = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 12))
    assert (
        found(f"x0: &x0 y\n{bomb}on: push\nenv: {{A: *x11}}\njobs: {{a: {{steps: [{{uses: *x11, run: *x11}}]}}}}\n")
        == []
    )
    assert found("on: push\njobs: {a: {steps: [{run: '" + "${{" * 50_000 + "'}]}}\n") == []
