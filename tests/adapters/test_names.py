"""Adapters stand on what is public: of a framework, and of the rooms below."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ADAPTERS = Path(__file__).parents[2] / "src/turnlog/adapters"
OWN = tuple(f"turnlog.adapters.{path.stem}" for path in ADAPTERS.glob("_[a-z]*.py"))
"""What adapters share."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def used_in(tree: ast.AST, own: set[str]) -> Iterator[str]:
    """The private names of others that a module asks for: imported, or of an object that is not its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module not in OWN:
            yield from filter(is_private, [*(node.module or "").split("."), *(one.name for one in node.names)])
        elif isinstance(node, ast.Import):
            yield from (part for one in node.names for part in one.name.split(".") if is_private(part))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr"):
            names = (one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str))
            yield from filter(is_private, names)


def defined_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


@pytest.mark.parametrize("path", sorted(ADAPTERS.rglob("*.py")), ids=lambda path: str(path.relative_to(ADAPTERS)))
def test_no_private_name_of_others_is_used(path: Path):
    beside = path.parent.glob("*.py") if path.parent != ADAPTERS else [path]
    own = {name for one in beside for name in defined_in(ast.parse(one.read_text()))}
    assert set(used_in(ast.parse(path.read_text()), own)) == set()


@pytest.mark.parametrize(
    "code",
    [
        "from agents._run import x",
        "from turnlog.formats._shared.key import bound",
        "import turnlog.thread._inner",
        "session._appender",
        "getattr(session, '_appender')",
    ],
)
def test_one_that_is_used_is_seen(code: str):
    assert list(used_in(ast.parse(code), set()))
