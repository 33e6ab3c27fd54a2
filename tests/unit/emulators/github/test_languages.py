"""The two small languages the stand-in reads itself: GraphQL documents and the head of a push."""

from __future__ import annotations

import pytest

from bot.emulators.github.gitside.pktline import packet, read_push, refusal
from bot.emulators.github.querylanguage import SyntaxRefused, parse

A, B = "a" * 40, "b" * 40


def test_arguments_come_from_variables_and_literals():
    source = """
        # a comment
        mutation Ready($id: ID!, $list: [String!] = ["x"]) {
          one: markPullRequestReadyForReview(input: {pullRequestId: $id, clientMutationId: "a \\"b\\"", n: -3, ok: true}) {
            pullRequest { id ... on PullRequest { isDraft } }
          }
        }
    """
    document = parse(source, {"id": "PR_1"})
    (one,) = document.fields
    assert (document.kind, one.alias, one.name) == ("mutation", "one", "markPullRequestReadyForReview")
    assert one.arguments["input"] == {"pullRequestId": "PR_1", "clientMutationId": 'a "b"', "n": -3, "ok": True}
    assert [field.name for field in one.selection[0].selection] == ["id", "isDraft"]


def test_a_bare_selection_is_a_query():
    document = parse('{ node(id: "x", kinds: [A, B]) { id } viewer { login } }', {})
    assert document.kind == "query"
    assert document.fields[0].arguments == {"id": "x", "kinds": ["A", "B"]}
    assert [field.name for field in document.fields] == ["node", "viewer"]


@pytest.mark.parametrize("source", ["", "{", "{}", "{ a } { b }", "query { a(", "{ a % }", "{ a(b: ) }"])
def test_other_text_is_refused(source):
    with pytest.raises(SyntaxRefused):
        parse(source, {})


def _push(*commands: str, capabilities: str = "report-status side-band-64k", pack: bytes = b"PACK") -> bytes:
    first, *rest = commands
    lines = packet(f"{first}\0{capabilities}".encode()) + b"".join(packet(line.encode()) for line in rest)
    return lines + b"0000" + pack


def test_the_head_of_a_push_is_read_up_to_its_pack():
    body = _push(f"{A} {B} refs/heads/x", f"{B} {A} refs/heads/y")
    push = read_push(body)
    assert push
    assert [(one.old, one.new, one.ref) for one in push.commands] == [(A, B, "refs/heads/x"), (B, A, "refs/heads/y")]
    assert "side-band-64k" in push.capabilities
    assert body[push.pack_offset :] == b"PACK"


def test_a_probe_is_no_push():
    assert read_push(b"0000") is None
    assert read_push(b"") is None


def test_a_refusal_names_each_ref_and_wraps_its_report():
    push = read_push(_push(f"{A} {B} refs/heads/x", f"{B} {A} refs/heads/y"))
    assert push
    wrapped = refusal(push, {"refs/heads/x": "not like this"}, "first line\nsecond line")
    assert b"\x02first line\n" in wrapped
    assert b"ng refs/heads/x not like this\n" in wrapped
    assert b"ng refs/heads/y atomic push failed\n" in wrapped
    assert wrapped.endswith(b"00000000")
    plain = read_push(_push(f"{A} {B} refs/heads/x", capabilities="report-status"))
    assert plain
    assert (
        refusal(plain, {"refs/heads/x": "no"}, "unseen")
        == packet(b"unpack ok\n") + packet(b"ng refs/heads/x no\n") + b"0000"
    )
