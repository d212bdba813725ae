"""The docstring of a public function names the errors of ours that it raises, itself or in a helper of its module.

Commands are left out: their docstring is what `--help` prints, and `docs/commands.md` has their exit codes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import machmeter

PACKAGE = Path(machmeter.__file__).parent
ERRORS = {node.name for node in ast.parse((PACKAGE / "errors.py").read_text()).body if isinstance(node, ast.ClassDef)}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent.name != "cli")


def name_of(node: ast.AST | None) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def raised(node: ast.AST, caught: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the errors of ours that the code of `node` raises and does not catch itself."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(child, ast.Try):
            kinds = [kind for handler in child.handlers if handler.type for kind in ast.walk(handler.type)]
            body, rest = ast.Module(child.body, []), [*child.handlers, *child.orelse, *child.finalbody]
            yield from raised(body, caught | {name_of(kind) for kind in kinds})
            yield from raised(ast.Module(rest, []), caught)  # type: ignore[arg-type]
            continue
        if isinstance(child, ast.Raise) and (name := name_of(child.exc)) in ERRORS - caught:
            yield name
        yield from raised(child, caught)


def unnamed(module: str) -> dict[str, set[str]]:
    """Return the errors that public functions of a module raise and do not name, by function."""
    tree = ast.parse(module)
    helpers = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name[0] == "_"}
    rooms = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    functions = [node for room in rooms for node in room.body if isinstance(node, ast.FunctionDef)]
    found = {}
    for function in functions:
        if function.name.startswith("_"):
            continue
        called = {name_of(node) for node in ast.walk(function) if isinstance(node, ast.Call)}
        errors = {*raised(function), *(name for helper in called & helpers.keys() for name in raised(helpers[helper]))}
        text = ast.get_docstring(function) or ""
        if missing := {error for error in errors if error not in text}:
            found[function.name] = missing
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_docstrings_name_the_errors_that_are_raised(path: Path) -> None:
    assert unnamed(path.read_text(encoding="utf-8")) == {}


def test_what_is_raised_is_found_and_what_is_caught_is_not() -> None:
    module = """
def public():
    "Do it. Raises Busy."
    try:
        raise NoResults("x")
    except NoResults:
        pass
    if 1:
        raise Busy("x")
    _help()

def _help():
    raise errors.DiskFull("x") from None
"""
    assert unnamed(module) == {"public": {"DiskFull"}}
