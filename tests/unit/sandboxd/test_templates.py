import sys
from pathlib import Path

import pytest

from bot.sandboxd.template_files import TemplateFileError, load_templates
from bot.sandboxd.templates import Bind, Template, base_template, interpreter_binds, python_template, venv_binds


def make_venv(directory: Path, base: Path) -> Path:
    (base / "bin").mkdir(parents=True)
    (base / "bin" / "python").touch(mode=0o755)
    (directory / "bin").mkdir(parents=True)
    (directory / "bin" / "python").symlink_to(base / "bin" / "python")
    (directory / "pyvenv.cfg").write_text(f"home = {base / 'bin'}\nversion = 3.11.7\n")
    return directory


def test_the_base_template_holds_nothing_but_usr():
    assert base_template() == Template("base")


@pytest.mark.parametrize(
    "target", ["relative", "/", "/usr", "/usr/local/x", "/home/user", "/proc", "/etc", "/a/../b", "/a/", "//a"]
)
def test_a_bind_cannot_cover_what_belongs_to_the_sandbox(target):
    with pytest.raises(ValueError, match="target"):
        Bind(Path("/somewhere"), target)


def test_path_comes_first_and_names_no_directory_twice():
    template = Template("t", env={"PATH": "ignored", "A": "b"}, path=("/opt/x/bin", "/usr/bin"))
    assert template.environment()["PATH"] == "/opt/x/bin:/usr/bin:/usr/local/bin:/bin"
    assert template.environment()["A"] == "b"


def test_a_venv_is_bound_at_its_target_at_its_own_path_and_with_its_python(tmp_path):
    venv = make_venv(tmp_path / "venv", tmp_path / "python")
    assert venv_binds(venv, "/opt/tools") == (
        Bind(venv, "/opt/tools"),
        Bind(venv, str(venv)),
        Bind(tmp_path / "python", str(tmp_path / "python")),
        Bind(tmp_path / "python", str(tmp_path / "python")),
    )


def test_the_python_template_puts_the_tools_first(tmp_path):
    template = python_template(
        tools=make_venv(tmp_path / "tools", tmp_path / "a"),
        semgrep=make_venv(tmp_path / "semgrep", tmp_path / "b"),
        extra=(Bind(tmp_path, "/opt/extra"),),
    )
    targets = [bind.target for bind in template.binds]
    assert len(targets) == len(set(targets))
    assert {"/opt/tools", "/opt/semgrep", "/opt/extra", str(tmp_path / "a"), str(tmp_path / "b")} <= set(targets)
    assert template.path == ("/opt/tools/bin", f"{sys.base_prefix}/bin")


def test_the_python_template_leaves_out_tools_that_are_not_there(tmp_path):
    template = python_template(tools=tmp_path / "none", semgrep=tmp_path / "none")
    assert template.binds == tuple(dict.fromkeys(interpreter_binds()))
    assert template.path == (f"{sys.base_prefix}/bin",)


def test_a_template_file_extends_a_known_template(tmp_path):
    parent = Template("parent", (Bind(tmp_path, "/opt/p"),), {"A": "1", "B": "1"}, ("/opt/p/bin",))
    (tmp_path / "kit.toml").write_text(
        f'extends = "parent"\npath = ["/opt/kit/bin"]\n[env]\nB = "2"\n[[binds]]\nsource = "{tmp_path}"\ntarget = "/opt/kit"\n'
    )
    (kit,) = load_templates(tmp_path, [parent])
    assert (kit.name, kit.path) == ("kit", ("/opt/kit/bin", "/opt/p/bin"))
    assert kit.env == {"A": "1", "B": "2"}
    assert [bind.target for bind in kit.binds] == ["/opt/p", "/opt/kit"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('extends = "nosuch"', "unknown template; known: base"),
        ("binds = 1", "binds"),
        ("not toml", "bad.toml"),
        ('colour = "red"', "colour"),
        ('[[binds]]\nsource = "/nowhere/at/all"\ntarget = "/opt/x"', "no such directory: /nowhere/at/all"),
        ('[[binds]]\nsource = "/usr"\ntarget = "/proc"', "/proc belongs to the sandbox"),
    ],
)
def test_a_template_file_with_a_fault_is_named_with_it(tmp_path, text, fault):
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(TemplateFileError, match=fault) as caught:
        load_templates(tmp_path, [base_template()])
    assert "bad.toml" in str(caught.value)
