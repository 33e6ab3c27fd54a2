"""Languages whose definitions are read with tree-sitter: endings, grammar wheels, what counts as a definition."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from functools import cache

from tree_sitter import Language, Node, Parser, Query, QueryCursor

WRAPPER = "wrapper"
"""Kind of a node that a definition begins with: its decorators, or `export`."""
_JS_DEFINITIONS = """
(function_declaration) @function
(generator_function_declaration) @function
(class_declaration) @class
(method_definition) @method
(program (lexical_declaration (variable_declarator) @variable))
(program (variable_declaration (variable_declarator) @variable))
(export_statement (lexical_declaration (variable_declarator) @variable))
(variable_declarator value: [(arrow_function) (function_expression)]) @function
(assignment_expression left: (member_expression) right: [(arrow_function) (function_expression)]) @function
(pair key: (property_identifier) value: [(arrow_function) (function_expression)]) @method
(export_statement) @wrapper
"""
_TS_DEFINITIONS = (
    _JS_DEFINITIONS
    + """
(abstract_class_declaration) @class
(interface_declaration) @interface
(type_alias_declaration) @type
(enum_declaration) @enum
(function_signature) @function
(abstract_method_signature) @method
(method_signature) @method
(internal_module) @module
"""
)
_C_DEFINITIONS = """
(function_definition) @function
(struct_specifier name: (_) body: (_)) @struct
(union_specifier name: (_) body: (_)) @struct
(enum_specifier name: (_) body: (_)) @enum
(type_definition) @type
(preproc_function_def) @macro
(preproc_def) @macro
"""

SHALLOW = 4
"""Levels that hold nearly every definition; a query of the whole tree takes as long as a quarter of its parse."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A grammar wheel (`module`, and the `factory` in it) and the query whose captures are kinds of definitions."""

    module: str
    definitions: str
    factory: str = "language"
    deepest: int = 10
    """Levels of the syntax tree in which definitions are looked for: below are statements, and looking costs time."""
    opening: tuple[bytes, ...] = ()
    """Where every definition has one of these words: below SHALLOW levels, only what holds such a word is looked into."""


GRAMMARS = {
    "python": Grammar(
        "tree_sitter_python",
        "(class_definition) @class (function_definition) @function (decorated_definition) @wrapper"
        " (module (expression_statement (assignment left: (identifier)) @variable))"
        " (class_definition body: (block (expression_statement (assignment left: (identifier)) @field)))",
        deepest=8,
        opening=(b"def ", b"class "),
    ),
    "javascript": Grammar("tree_sitter_javascript", _JS_DEFINITIONS, deepest=12),
    "typescript": Grammar("tree_sitter_typescript", _TS_DEFINITIONS, "language_typescript", 12),
    "tsx": Grammar("tree_sitter_typescript", _TS_DEFINITIONS, "language_tsx", 12),
    "go": Grammar(
        "tree_sitter_go",
        "(function_declaration) @function (method_declaration) @method (type_spec) @type (type_alias) @type"
        " (source_file (const_declaration (const_spec) @constant))"
        " (source_file (var_declaration (var_spec) @variable))",
    ),
    "java": Grammar(
        "tree_sitter_java",
        "(class_declaration) @class (interface_declaration) @interface (enum_declaration) @enum (record_declaration)"
        " @class (annotation_type_declaration) @interface (method_declaration) @method (constructor_declaration)"
        " @method (field_declaration) @field (enum_constant) @constant",
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        "(function_item) @function (struct_item) @struct (enum_item) @enum (trait_item) @interface (impl_item) @impl"
        " (mod_item body: (_)) @module (macro_definition) @macro (type_item) @type (const_item) @constant"
        " (static_item) @constant (function_signature_item) @function (union_item) @struct",
    ),
    "c": Grammar("tree_sitter_c", _C_DEFINITIONS, deepest=8),
    "cpp": Grammar(
        "tree_sitter_cpp",
        _C_DEFINITIONS + "(class_specifier name: (_) body: (_)) @class (namespace_definition name: (_)) @module"
        " (alias_declaration) @type",
    ),
    "csharp": Grammar(
        "tree_sitter_c_sharp",
        "(class_declaration) @class (interface_declaration) @interface (struct_declaration) @struct (enum_declaration)"
        " @enum (record_declaration) @class (method_declaration) @method (constructor_declaration) @method"
        " (property_declaration) @field (delegate_declaration) @type",
    ),
    "ruby": Grammar(
        "tree_sitter_ruby",
        "(class) @class (module) @module (method) @method (singleton_method) @method"
        " (assignment left: (constant)) @constant",
    ),
    "php": Grammar(
        "tree_sitter_php",
        "(class_declaration) @class (interface_declaration) @interface (trait_declaration) @class (enum_declaration)"
        " @enum (function_definition) @function (method_declaration) @method (const_element) @constant",
        "language_php",
    ),
}

_ENDINGS = {
    "python": "py pyi pyw",
    "javascript": "js jsx mjs cjs",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "java": "java",
    "rust": "rs",
    "c": "c h",
    "cpp": "cc cpp cxx hpp hh hxx ipp inl cu cuh",
    "csharp": "cs",
    "ruby": "rb rake gemspec",
    "php": "php phtml",
    # without a grammar here: read by patterns, or as text
    "cython": "pyx pxd pxi",
    "component": "vue svelte astro",
    "kotlin": "kt kts",
    "scala": "scala sbt",
    "swift": "swift",
    "shell": "sh bash zsh",
    "markdown": "md markdown mdx",
    "rst": "rst",
    "text": "txt adoc org",
    "config": "toml ini cfg conf yml yaml json properties xml gradle tf env",
    "web": "html htm css scss less sass svg",
    "sql": "sql",
    "other-code": "lua pl pm r jl ex exs erl hs ml mli clj cljs dart groovy m mm zig nim fs fsx vb proto graphql",
}
LANGUAGE_OF = {ending: language for language, endings in _ENDINGS.items() for ending in endings.split()}
PROSE = frozenset({"markdown", "rst", "text"})
DATA = frozenset({"config", "web", ""})


def language_of(path: str) -> str:
    """The language by the file's ending; "" for one not known here."""
    _, dot, ending = path.rpartition(".")
    if not dot or "/" in ending:
        return ""
    return LANGUAGE_OF.get(ending) or LANGUAGE_OF.get(ending.lower(), "")


@cache
def has_grammar(language: str) -> bool:
    """Whether the language has a grammar here and its wheel is installed; without it, patterns serve."""
    return language in GRAMMARS and importlib.util.find_spec(GRAMMARS[language].module) is not None


_WHOLE_NAMES = ("scoped_identifier", "qualified_identifier", "generic_type")
_NAME_FIELDS = ("name", "left", "declarator", "key", "property", "type")


class Tools:
    """Parser and query of a language with a grammar, and its fields and kinds by number: names would be looked up at every node."""

    def __init__(self, grammar: Grammar) -> None:
        made = Language(getattr(importlib.import_module(grammar.module), grammar.factory)())
        self.parser = Parser(made)
        self.cursor = QueryCursor(Query(made, grammar.definitions))
        self.deepest = grammar.deepest
        self.opening = grammar.opening
        self.block = made.id_for_node_kind("block", True)
        self.whole_names = frozenset(made.id_for_node_kind(kind, True) for kind in _WHOLE_NAMES)
        self._naming = _numbers(made, *_NAME_FIELDS)
        self._values = _numbers(made, "value", "right")
        self._body = made.field_id_for_name("body")

    def body(self, node: Node) -> Node | None:
        """What is inside a definition."""
        return None if self._body is None else node.child_by_field_id(self._body)

    def value(self, node: Node) -> Node | None:
        """What a name is bound to."""
        for number in self._values:
            found = node.child_by_field_id(number)
            if found is not None:
                return found
        return None

    def named(self, node: Node) -> Node | None:
        """The child that leads to the name of a definition."""
        for number in self._naming:
            found = node.child_by_field_id(number)
            if found is not None:
                return found
        return None


def _numbers(language: Language, *fields: str) -> tuple[int, ...]:
    """Of those fields that the language has."""
    return tuple(number for field in fields if (number := language.field_id_for_name(field)) is not None)


@cache
def tools_for(language: str) -> Tools:
    """Made once in a process."""
    return Tools(GRAMMARS[language])
