"""What a task names outright is read from its text."""

from bot.retrieval.mentions import Frame, read
from bot.retrieval.signals import query_of


def test_paths_modules_and_identifiers_are_told_apart():
    found = read(
        "Crash in src/app/views.py\n\nCalling `make_url()` of app.views.Router or lib::net#open fails, see app/core"
    )
    assert found.title == "Crash in src/app/views.py"
    assert "src/app/views.py" in found.paths
    assert {"app.views.Router", "lib.net.open"} <= set(found.dotted)
    assert {"make_url", "Router"} <= set(found.identifiers)
    assert "app/core" in found.foldered


def test_a_python_trace_is_read_outermost_first():
    text = (
        'Traceback:\n  File "/srv/app/a.py", line 3, in run\n    x()\n  File "/srv/app/b.py", line 9, in go\nValueError'
    )
    assert read(text).frames == (Frame("/srv/app/a.py", 3, "run"), Frame("/srv/app/b.py", 9, "go"))


def test_traces_of_javascript_and_java_are_read():
    text = "at Foo.bar (/srv/lib/x.js:10:5)\n\tat org.a.Thing.go(Thing.java:12)"
    assert [(frame.path, frame.line) for frame in read(text).frames if "/" in frame.path] == [
        ("/srv/lib/x.js", 10),
        ("org/a/Thing.java", 12),
    ]


def test_a_flood_of_names_is_bounded():
    assert len(read(" ".join(f"name_{n}" for n in range(5000))).identifiers) == 400


def test_of_a_link_only_the_path_of_a_repositorys_file_is_read():
    text = (
        "See https://svelte.dev/repl/61c6df25?version=3.6.7 and (https://example.org/issue_tracker/make_url).\n"
        "The cause is https://github.com/o/r/blob/main/src/dom/bind.ts#L41, also https://git.example/o/r/-/raw/v1/lib/a.go"
    )
    query = query_of(text)
    assert query.mentions.paths == ("src/dom/bind.ts", "lib/a.go")
    assert not query.mentions.identifiers
    assert not {"repl", "version", "track", "github"} & set(query.weights)
    assert {"caus", "bind", "dom"} <= set(query.weights)
