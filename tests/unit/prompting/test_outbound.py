"""Published texts say the same and do nothing."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bot.prompting import Limits, publishable, publishable_line
from tests.unit.prompting.reading import dangers

REPORT = """\
Hi @bob and @org/team, fixes #12, closes acme/x#3 and https://github.com/acme/x/issues/3. It costs $5 & 5 * 3 < 7.

- list snake_case *em* **b** ~~s~~
- `code` [ok](https://github.com/a/b) [bad](https://evil.example/x?y=1) <https://evil.example>
  ![i](https://evil.example/a.png)

1. one
2. two

   para

> quote @x
> - nested

| a | b |
|:-:|---|
| 1 | `x` \\| y |

```python
@pytest.fixture
/merge
/usr/bin/python x
Reviewed-by: Eve
def f(): pass
```

/merge
bors r+
@dependabot merge

/agent approve abc

<details><summary>hi</summary>x</details>

<!-- pullwright:state -->

Co-authored-by: Eve <e@example>
**Signed-off-by**: Eve

--- | ---
\\# not a title
1986\\. not a list
"""


def test_a_whole_report_reads_the_same(snapshot: SnapshotAssertion):
    text = publishable(REPORT)
    assert dangers(text) == []
    assert text == snapshot


@pytest.mark.parametrize(
    ("text", "published"),
    [
        ("plain words.", "plain words."),
        ("a@b.example", "a@b.example"),
        ("Hello @bob!", "Hello `@bob`!"),
        ("`a`@bob`c`", "`a` `@bob` `c`"),
        ("@everyone", "`@everyone`"),
        ("x @\u200bbob", "x `@bob`"),
        ("**@bob** *@bob*", "**`@bob`** *`@bob`*"),
        ("&#64;bob", "`@bob`"),
        ("<b>@bob</b>", "`<b>@bob</b>`"),
        ("fixes **#1**", "fixes **`#1`**"),
        ("fi&#120;es #1, Closes: o/r#2; resolves GH-3", "fixes `#1`, Closes: `o/r#2`; resolves `GH-3`"),
        ("![x](https://e.example/?s) ![y][r]\n\n[r]: https://e.example", "(image removed: x) (image removed: y)"),
        ("[![x](https://e.example/i)](https://e.example/l)", "(image removed: x) (`https://e.example/l`)"),
        ("\\![a](https://github.com/x.png)", "\\![a](<https://github.com/x.png>)"),
        ("<img src=https://e.example/s>", "\\<img `src=https://e.example/s>`"),
        ("[a](data:text/html,x) [b](javascript:x) [c](JavaScript&colon;x)", "a b c"),
        ("[a](//e.example) [b](http://github.com) [c](https://u@github.com)", None),
        ("[a](https://github.com.e.example) [b](https://github.com:8443) [c](https://github.com\\@e.example)", None),
        ("@[b](https://e.example)", "`@b` (`https://e.example`)"),
        ("**<!-- x -->** b", "b"),
        ("[a](docs/x.md) [b](#top)", "[a](<docs/x.md>) [b](<#top>)"),
        ("see https://github.com/a/b_c.", "see <https://github.com/a/b_c>."),
        ("www.e.example", "`www.e.example`"),
        ("<!-- hidden -->", ""),
        ("a <!-- pullwright:x --> b", "a b"),
        ("`<!-- pullwright:x -->`", "`(!-- pullwright:x -->`"),
        ("/merge\nx /merge", "`/merge`\nx /merge"),
        ("x  \n/merge", "x\n`/merge`"),
        ("- /merge", "- `/merge`"),
        ("# /merge", "# `/merge`"),
        ("&#47;agent run", "`/agent` run"),
        ("ok to test", "`ok to test`"),
        ("Co-authored-by\\: x\nok", "ok"),
        ("\x1b[31mred\x1b[0m \U000e0041x", "red x"),
        ("```mermaid\nx\n```", "```\nx\n```"),
        ("```suggestion\nx\n```", "```\nx\n```"),
        ("[skip ci]", "\\[skip ci\\]"),
        ("a\n\\---\n\\===", "a\n\\---\n\\==="),
        ("```\n` ```` `\n```", "`````\n` ```` `\n`````"),
        ("", ""),
    ],
)
def test_one_thing_at_a_time(text: str, published: str | None):
    made = publishable(text)
    assert dangers(made) == []
    if published is not None:
        assert made == published


TOKEN = "ghp_" + "a1B2" * 9
KNOWN = "the-canary-value-12345"


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        f"x={TOKEN};",
        f"gh**{TOKEN[2:]}**",
        f"`{TOKEN}`",
        f"```\n{TOKEN}\n```",
        f"[x](https://e.example/{TOKEN})",
        f"[x](https://github.com/{TOKEN})",
        f"&#103;{TOKEN[1:]}",
        TOKEN[::-1],
        base64.b64encode(f"key: {TOKEN}".encode()).decode(),
        "data=" + base64.urlsafe_b64encode(TOKEN.encode()).decode(),
        base64.encodebytes(b"some words before it " * 3 + TOKEN.encode()).decode(),
        TOKEN.encode().hex(),
        TOKEN.encode().hex(" "),
        KNOWN,
        KNOWN[::-1],
        " ".join(KNOWN),
        KNOWN[:9] + "\n" + KNOWN[9:],
        f"{KNOWN[:5]}**{KNOWN[5:]}**",
        base64.b64encode(KNOWN.encode()).decode(),
        KNOWN.encode().hex().upper(),
        "sk-ant-api03-" + "x" * 40,
        "AKIA" + "ABCDEFGH12345678",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
        "https://user:hunter22@host.example/x",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
        "Authorization: Basic dXNlcjpwYXNzd29yZA==",
    ],
)
def test_a_secret_is_masked_in_every_form(text: str):
    made = publishable(f"before {text} after", Limits(secrets=(KNOWN,)))
    assert "secret-removed" in made
    squeezed = "".join(made.split())
    for value in (
        TOKEN,
        KNOWN,
        TOKEN[::-1],
        KNOWN[::-1],
        "hunter22",
        "MIIEow",
        "dXNlcjpwYXNz",
        "x" * 40,
        "ABCDEFGH12345678",
        "eyJzdWIi",
    ):
        assert value not in squeezed
    assert "secret-removed" in publishable_line(f"before {text} after", secrets=(KNOWN,))


@pytest.mark.parametrize(
    "text",
    [
        "3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
        "a" * 64,
        "src/very/long/path/to/some/module_name.py",
        "basic tests/unit/stages/test_x.py",
    ],
)
def test_ids_and_paths_are_no_secrets(text: str):
    assert publishable(text, Limits(secrets=(KNOWN,))) == text


def test_a_long_text_is_cut_after_a_whole_part():
    limits = Limits(length=200)
    made = publishable("\n\n".join(f"paragraph {n} @bob" for n in range(50)), limits)
    assert len(made) <= 200
    assert made.endswith("(cut)")
    assert dangers(made) == []
    code = publishable("```\n" + "line\n" * 100 + "```", limits)
    assert len(code) <= 200
    assert code.endswith("```\n\n… (cut)")
    exact = "a" * 200
    assert publishable(exact, limits) == exact


def test_ten_links_are_enough():
    made = publishable(" ".join(f"[a](https://github.com/{n})" for n in range(12)))
    assert made.count("](<") == 10


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Fix the sum", "Fix the sum"),
        ("Fix #12 for @bob in `x` sum_of_parts", "Fix `#12` for `@bob` in `x` sum_of_parts"),
        ("a [skip ci] b [no-ci] skip-checks: true", "a (skip ci) b (no-ci) skip checks, true"),
        ("/merge now", "`/merge` now"),
        ("two\nlines <!-- hidden -->\nSigned-off-by: x", "two lines"),
        ("word " * 60, None),
    ],
)
def test_a_title_is_one_inert_line(text: str, line: str | None):
    made = publishable_line(text)
    assert len(made) <= 200
    assert "\n" not in made
    if line is not None:
        assert made == line


PARTS = st.sampled_from(
    [
        "@bob", "@org/team", "#1", "o/r#2", "GH-3", "fixes ", "/merge", "/agent run", "bors r+", "\n", "\n\n", " ", "  \n",
        "`", "``", "```\n", "~~~\n", "*", "**", "_", "~~", "[", "]", "(", ")", "![", "](https://evil.example)", "<", ">",
        "](https://github.com/a)", "<b>", "</b>", "<!--", "-->", "<!-- pullwright:x -->", "https://evil.example/x",
        "https://github.com/a", "www.evil.example", "<https://evil.example>", "&#64;", "&lt;", "&amp;", "\\", "|", "| a |\n|---|\n",
        "- ", "1. ", "> ", "# ", "---\n", "===\n", "    ", "\t", "\u200b", "\u202e", "\U000e0041", "\x1b[31m", "word", "!",
        "Signed-off-by: x", "[r]: https://evil.example\n", "[r]", "data:x", "\u00a0", "é", "$", ":", "x@y.z", "<?", "?>", "<!X", "]]>",
    ]
)  # fmt: skip
HOSTILE = st.lists(PARTS, max_size=40).map("".join)


@settings(max_examples=100, deadline=None)
@given(HOSTILE)
def test_nothing_active_is_ever_left(text: str):
    made = publishable(text)
    assert dangers(made) == []


@settings(max_examples=50, deadline=None)
@given(HOSTILE)
def test_publishing_again_leaves_nothing_active_either(text: str):
    assert dangers(publishable(publishable(text))) == []


@settings(max_examples=50, deadline=None)
@given(st.one_of(HOSTILE, st.text()))
def test_a_title_never_acts(text: str):
    made = publishable_line(text)
    assert len(made) <= 200
    assert [
        each
        for each in dangers(made.replace("<", "("))
        if each.startswith(("mention", "reference", "address", "line", "invisible", "a marker"))
    ] == []


@settings(max_examples=50, deadline=None)
@given(st.text(), st.integers(20, 200))
def test_any_text_at_any_length(text: str, length: int):
    made = publishable(text, Limits(length=length))
    assert len(made) <= length
    assert dangers(made) == []
