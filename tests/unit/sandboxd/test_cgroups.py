"""Control groups on directories that stand for both versions' file systems."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.sandboxd.cgroups import Cgroups, Group, Hierarchy, find_cgroups, sweep
from bot.sandboxd.limits import Limits

LIMITS = Limits(memory_bytes=1000, processes=7, cpus=1.5)


def v2(root: Path, *, group: str = "", controllers: str = "cpu memory pids") -> tuple[str, str]:
    place = root / group
    place.mkdir(parents=True, exist_ok=True)
    for each in {root, place}:
        (each / "cgroup.controllers").write_text(controllers)
        (each / "cgroup.subtree_control").write_text("")
        (each / "cgroup.procs").write_text("")
    return f"0::/{group}\n", f"30 20 0:1 / {root} rw - cgroup2 cgroup2 rw\n"


def test_where_no_hierarchy_can_be_written_a_sentence_says_so():
    cgroups = find_cgroups(LIMITS, own="", mounts="")
    assert "memory, pids, cpu are not enforced by a control group" in cgroups.shortfall
    assert cgroups.make() == Group()
    assert cgroups.make().joining() == []


def test_a_unified_hierarchy_without_controllers_counts_as_none(tmp_path):
    assert find_cgroups(LIMITS, own=v2(tmp_path, controllers="")[0], mounts=v2(tmp_path, controllers="")[1]).shortfall


def test_a_file_system_that_takes_no_settings_counts_as_none(tmp_path):
    """The stand-in directory has no `memory.max` in a new group, as a controller that is not enabled has none."""
    own, mounts = v2(tmp_path, group="service")
    assert find_cgroups(LIMITS, own=own, mounts=mounts).shortfall
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["service"]


def test_version_two_says_its_limits_in_one_group():
    settings = {
        name: value for name, value, _ in Hierarchy(Path("x"), ("memory", "pids", "cpu"), unified=True).settings(LIMITS)
    }
    assert settings == {
        "memory.max": 1000,
        "memory.swap.max": 0,
        "pids.max": 7,
        "cpu.max": "150000 100000",
    }


def test_version_one_says_them_in_three():
    settings = {
        name: value
        for controller in ("memory", "pids", "cpu")
        for name, value, _ in Hierarchy(Path("x"), (controller,), unified=False).settings(LIMITS)
    }
    assert settings["memory.limit_in_bytes"] == settings["memory.memsw.limit_in_bytes"] == 1000
    assert settings["pids.max"] == 7
    assert (settings["cpu.cfs_quota_us"], settings["cpu.cfs_period_us"]) == (150_000, 100_000)


def test_joining_comes_before_everything_else(tmp_path):
    group = Group((tmp_path,), (tmp_path / "tasks",))
    (tmp_path / "tasks").write_text("")
    assert os.spawnv(os.P_WAIT, "/bin/sh", [*group.joining(), "test", "-s", str(tmp_path / "tasks")]) == 0
    (tmp_path / "tasks").unlink()
    tmp_path.chmod(0o500)
    refused = Group((tmp_path,), (tmp_path / "no" / "tasks",))
    assert os.spawnv(os.P_WAIT, "/bin/sh", [*refused.joining(), "true"]) != 0


def test_a_dead_servers_groups_are_removed_and_a_live_ones_are_not(tmp_path):
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    dead, reused, live = (
        tmp_path / "pullwright-4194305-1-1",
        tmp_path / f"pullwright-{os.getpid()}-1-1",
        tmp_path / f"pullwright-{os.getpid()}-{start}-9",
    )
    for each in (dead, reused, live):
        each.mkdir()
    sweep(tmp_path)
    assert [path.exists() for path in (dead, reused, live)] == [False, False, True]


@pytest.mark.parametrize("missing", ["memory.max", "pids.max"])
def test_a_group_that_cannot_be_limited_is_not_used(tmp_path, missing):
    cgroups = Cgroups((Hierarchy(tmp_path, (missing.split(".")[0],), unified=True),), LIMITS)
    with pytest.raises(OSError, match=missing):
        cgroups.make()
    assert list(tmp_path.iterdir()) == []
