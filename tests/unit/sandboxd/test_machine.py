import pytest

from bot.sandboxd.errors import IsolationUnavailable
from bot.sandboxd.launch import environment_of, find_tool
from bot.sandboxd.limits import Limits
from bot.sandboxd.staging import traversable
from bot.sandboxd.templates import base_template


@pytest.mark.parametrize(("tool", "package"), [("bwrap", "bubblewrap"), ("nsenter", "util-linux")])
def test_a_missing_tool_is_refused_with_what_to_install(tmp_path, tool, package):
    with pytest.raises(IsolationUnavailable, match=f"install the package `{package}`"):
        find_tool(tool, path=str(tmp_path))


def test_a_directory_below_a_shut_one_is_not_traversable(tmp_path):
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    for part in (inner, *inner.parents[:-1]):
        if part.is_relative_to(tmp_path):
            part.chmod(0o755)
    (tmp_path / "outer").chmod(0o700)
    assert not traversable(inner)


def test_a_later_layer_of_the_environment_wins():
    env = environment_of(base_template(), {"A": "sandbox", "B": "sandbox"}, {"B": "call"})
    assert (env["A"], env["B"], env["HOME"], env["USER"]) == ("sandbox", "call", "/home/user", "user")


def test_core_dumps_are_never_allowed():
    assert Limits().rlimits(grouped=frozenset())["RLIMIT_CORE"] == 0


def test_memory_is_bounded_for_each_process_where_no_group_does_it():
    assert Limits(memory_bytes=5).rlimits(grouped=frozenset({"pids", "cpu"}))["RLIMIT_DATA"] == 5
    assert "RLIMIT_DATA" not in Limits().rlimits(grouped=frozenset({"memory"}))
