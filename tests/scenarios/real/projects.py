"""The real projects: which releases, which files of the later one fix the bug, how the project runs its tests."""

from __future__ import annotations

import ast
import difflib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tests.scenarios.real import sources
from tests.scenarios.real.trees import File, files_of

SETTINGS = ".github/pullwright.toml"


@dataclass(frozen=True, slots=True)
class Mistake:
    """What the first attempt writes instead of the right passage, and the upstream test that says so."""

    path: str
    right: str
    wrong: str
    caught_by: str


@dataclass(frozen=True, slots=True)
class Fix:
    """One step of the upstream fix. `look` is what one searches for first; `try_out` runs the tests it is about."""

    title: str
    goal: str
    paths: tuple[str, ...]
    look: str
    try_out: str
    mistake: Mistake | None = None
    fails_first: bool = True
    """The upstream test fails on the code as it was."""

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(path for path in self.paths if path.startswith("tests/"))

    @property
    def code(self) -> tuple[str, ...]:
        return tuple(path for path in self.paths if path not in self.tests)


@dataclass(frozen=True)
class Project:
    """A project at the release with the bug, and the way to the next one."""

    name: str
    old: str
    new: str
    title: str
    changelog: str
    fixes: tuple[Fix, ...]
    test: str
    step_test: str
    flags: tuple[str, ...] = ()
    """What a reviewer has to name because the product points it out."""
    patience: float = 600.0

    @cached_property
    def before(self) -> Path:
        return sources.release(self.name, self.old)

    @cached_property
    def after(self) -> Path:
        return sources.release(self.name, self.new)

    @property
    def settings(self) -> str:
        """The repository's `.github/pullwright.toml`."""
        return (
            f"test = '''{self.test}'''\nstep_test = '''{self.step_test}'''\n"
            f'template = "real"\ntest_timeout_seconds = 1800\nlanding = "ready"\n'
        )

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(path for fix in self.fixes for path in fix.paths)

    def text_before(self, path: str) -> str:
        """The file as it was; "" when it did not exist."""
        return _text(self.before / path)

    def text_after(self, path: str) -> str:
        return _text(self.after / path)

    def base(self) -> dict[str, File]:
        """Every file of the repository as people work on it before the fix."""
        return {**files_of(self.before), SETTINGS: File(self.settings.encode())}

    def fixed(self) -> dict[str, File]:
        """Every file once the upstream fix is in."""
        base = self.base()
        for path in self.paths:
            executable = path in base and base[path].executable
            base[path] = File((self.after / path).read_bytes(), executable)
        return base

    def report(self) -> str:
        """What the changelog of the later release adds, as a person would report it."""
        lines = difflib.ndiff(
            self.text_before(self.changelog).splitlines(), self.text_after(self.changelog).splitlines()
        )
        return "\n".join(line[2:] for line in lines if line.startswith("+ ")).strip()

    def new_tests(self) -> frozenset[str]:
        """Names of test functions that only the later release has in the files of the fix."""
        found: set[str] = set()
        for path in (path for fix in self.fixes for path in fix.tests):
            found |= _tests(self.text_after(path)) - _tests(self.text_before(path))
        return frozenset(found)


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def _tests(text: str) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


_PYTEST = "PYTHONPATH=src python -m pytest -q"
_DJANGO = "PYTHONPATH=. python tests/runtests.py --verbosity 2 --parallel"

MARSHMALLOW = Project(
    name="marshmallow",
    old="4.1.0",
    new="4.1.1",
    title="URL validator refuses custom schemes that are not written in lower case",
    changelog="CHANGELOG.rst",
    fixes=(
        Fix(
            title="Compare schemes of the URL validator without case",
            goal="validate.URL(schemes={'HTTP'}) accepts http://example.com; schemes are kept in lower case.",
            paths=("src/marshmallow/validate.py", "tests/test_validate.py", "CHANGELOG.rst"),
            look="schemes",
            try_out=f"{_PYTEST} tests/test_validate.py",
        ),
    ),
    test=f"{_PYTEST} tests/test_validate.py tests/test_fields.py tests/test_deserialization.py",
    step_test=f"{_PYTEST} tests/test_validate.py tests/test_fields.py",
)

MARSHMALLOW_LARGE = replace(MARSHMALLOW, test=_PYTEST)

WERKZEUG = Project(
    name="werkzeug",
    old="3.0.5",
    new="3.0.6",
    title="max_form_memory_size does not hold for large fields, and safe_join misses some paths",
    changelog="CHANGES.rst",
    fixes=(
        Fix(
            title="Count a field's size over all its data events",
            goal=(
                "MultiPartParser.parse adds up the length of a non-file field's data events and raises "
                "RequestEntityTooLarge once they exceed max_form_memory_size; files are not counted."
            ),
            paths=(
                "src/werkzeug/formparser.py",
                "src/werkzeug/sansio/multipart.py",
                "tests/test_formparser.py",
                "CHANGES.rst",
            ),
            look="max_form_memory_size",
            try_out=f"{_PYTEST} tests/test_formparser.py",
            mistake=Mistake(
                "src/werkzeug/formparser.py",
                "if field_size > self.max_form_memory_size:",
                "if field_size < self.max_form_memory_size:",
                "test_limiting",
            ),
            fails_first=False,  # the decoder refuses so small a limit already because of the part's headers
        ),
        Fix(
            title="Let safe_join refuse every path that starts with a slash",
            goal="safe_join returns None for a path that starts with /, on every system and version of Python.",
            paths=("src/werkzeug/security.py", "tests/test_security.py"),
            look="isabs",
            try_out=f"{_PYTEST} tests/test_security.py",
            fails_first=False,  # only old Pythons on Windows have this bug
        ),
    ),
    test=f"{_PYTEST} tests/sansio tests/test_formparser.py tests/test_security.py tests/test_wrappers.py",
    step_test=f"{_PYTEST} tests/test_formparser.py tests/test_security.py tests/sansio",
    flags=("tests_removed",),  # three assertions became one with parameters
)

WERKZEUG_LARGE = replace(WERKZEUG, test=_PYTEST)

_DOMAIN = Fix(
    title="Anchor the pattern of DomainNameValidator at both ends",
    goal="DomainNameValidator accepts only values that are a domain name as a whole, with accept_idna or without.",
    paths=("django/core/validators.py", "tests/validators/tests.py"),
    look="class DomainNameValidator",
    try_out=f"{_DJANGO} 1 validators",
    mistake=Mistake(
        "django/core/validators.py",
        '                + self.ascii_only_tld_re\n                + r"$",\n',
        "                + self.ascii_only_tld_re,\n",
        "test_validators",
    ),
)

_FIELDSET = Fix(
    title="Show fieldset names that are not ASCII",
    goal=(
        "The admin's fieldset.html shows a fieldset's name whatever its characters; ids of headings hold the numbers of "
        "form and fieldset instead of the name."
    ),
    paths=(
        "django/contrib/admin/templates/admin/includes/fieldset.html",
        "tests/admin_views/admin.py",
        "tests/admin_views/tests.py",
        "tests/admin_inlines/tests.py",
    ),
    look="fieldset.name",
    try_out=f"{_DJANGO} 1 admin_inlines admin_views.tests.AdminViewPermissionsTest",
)

DJANGO = Project(
    name="django",
    old="5.1.2",
    new="5.1.3",
    title="DomainNameValidator accepts values that only contain a domain name",
    changelog="docs/releases/5.1.3.txt",
    fixes=(_DOMAIN,),
    test=f"{_DJANGO} 1 validators model_fields",
    step_test=f"{_DJANGO} 1 validators",
)

DJANGO_LARGE = replace(
    DJANGO,
    title="DomainNameValidator accepts too much, and fieldset names that are not ASCII are lost",
    fixes=(_DOMAIN, _FIELDSET),
    test=(
        f"{_DJANGO} 2 validators forms_tests model_fields model_forms utils_tests admin_inlines admin_views admin_checks "
        "admin_widgets admin_changelist admin_utils auth_tests template_tests"
    ),
    step_test=f"{_DJANGO} 1 validators admin_inlines admin_views.tests.AdminViewPermissionsTest",
    patience=2000.0,
)
