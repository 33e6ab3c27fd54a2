"""Tests, vendored, generated and minified files are told from code by their path."""

import pytest

from bot.retrieval.kinds import Kind, kind_of


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("app/views.py", Kind.CODE),
        ("django/test/client.py", Kind.CODE),
        ("tests/test_views.py", Kind.TEST),
        ("src/test/java/a/FooTest.java", Kind.TEST),
        ("pkg/server_test.go", Kind.TEST),
        ("src/a.spec.ts", Kind.TEST),
        ("vendor/x/y.go", Kind.VENDORED),
        ("theme/static/jquery-3.5.1.js", Kind.VENDORED),
        ("lib/v2.js", Kind.CODE),
        ("shop/migrations/0001_initial.py", Kind.GENERATED),
        ("django/db/migrations/writer.py", Kind.CODE),
        ("static/jquery.min.js", Kind.GENERATED),
        ("api/service_pb2.py", Kind.GENERATED),
        ("package-lock.json", Kind.GENERATED),
        ("README.md", Kind.DOCS),
        ("docs/conf.py", Kind.DOCS),
        ("setup.cfg", Kind.DATA),
        ("examples/cluster/plot_digits.py", Kind.DOCS),
        ("site/src/routes/index.svelte", Kind.DOCS),
        ("src/main/java/checks/site/Macro.java", Kind.CODE),
        ("src/main/java/com/example/App.java", Kind.CODE),
    ],
)
def test_kind(path: str, kind: Kind):
    assert kind_of(path) is kind


def test_a_file_that_says_it_is_generated_is():
    assert kind_of("a/b.py", generated=True) is Kind.GENERATED
