"""The lists of rooms and modules in documents, from the docstrings; `python -m tests.architecture.map` writes them."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

from turnlog.hooks import hooked_agent, names

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "turnlog"
DOCUMENTS = {"docs/architecture.md": ("map",), "CONTRIBUTING.md": ("rooms",), "docs/guide/live.md": ("agents",)}


@cache
def tree_of(path: Path) -> ast.Module:
    """A module, parsed."""
    return ast.parse(path.read_bytes())


@cache
def first_line(path: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(tree_of(path)) or "").partition("\n")[0].strip()


def layers() -> list[list[str]]:
    """The rooms that stand side by side, from the top down, as the import contract has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["name"] == "Rooms only look down")
    names = [[name.strip() for name in layer.replace(":", "|").split("|")] for layer in layers]
    return [[name for name in layer if not name.startswith("(")] for layer in names]


def rooms() -> list[str]:
    """The same, one after the other."""
    return [name for layer in layers() for name in layer]


def module_of(room: str) -> Path:
    """The file whose docstring speaks for a room."""
    return SRC / f"{room}.py" if (SRC / f"{room}.py").exists() else SRC / room / "__init__.py"


def room_list() -> str:
    """Each room with what it says of itself."""
    rows = [f"| `{room}` | {_cell(first_line(module_of(room)))} |" for room in rooms()]
    return "\n".join(["| room, from the top down | |", "| --- | --- |", *rows])


def module_map() -> str:
    """Every module, room by room, with what it says of itself."""
    parts: list[str] = []
    for room in rooms():
        parts += [f"### {room}", "", f"{first_line(module_of(room))}", ""]
        modules = sorted((SRC / room).rglob("*.py"), key=lambda path: _order(path, SRC / room))
        rows = [f"| `{_name(path, room)}` | {_cell(first_line(path))} |" for path in modules[1:]]
        parts += ["| module | |", "| --- | --- |", *rows, ""] if rows else []
    return "\n".join(parts).rstrip()


def agent_table() -> str:
    """Every agent that can be hooked: where, by what, and the version that it was tried with."""
    rows = ["| agent | its file | of a project | begins, tool, ends | tried with |", "| --- | --- | --- | --- | --- |"]
    for one in map(hooked_agent, names()):
        told = ", ".join(f"`{event.name}`" for event in one.events if event.means != "leave")
        variable = f" (`${one.folder.variable}`)" if one.folder.variable else ""
        file, project = f"`{one.folder.usual}/{one.file.name}`{variable}", one.file.project
        rows.append(f"| {one.title} | {file} | {f'`{project}`' if project else ''} | {told} | {one.tried} |")
    return "\n".join(rows)


def _order(path: Path, room: Path) -> tuple[bool, tuple[str, ...]]:
    """A room's own modules before those of its folders, and a folder before what is in it."""
    parts = path.relative_to(room).with_suffix("").parts
    return len(parts) > 1, tuple("" if part == "__init__" else part for part in parts)


def _name(path: Path, room: str) -> str:
    inside = path.relative_to(SRC / room)
    return f"{inside.parent}/" if inside.name == "__init__.py" else str(inside)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def filled(text: str) -> str:
    """A document with its lists as they should be."""
    for name, made in (("map", module_map), ("rooms", room_list), ("agents", agent_table)):
        begin, end = f"<!-- {name}: written by `python -m tests.architecture.map` -->", f"<!-- end of {name} -->"
        if begin in text:
            before, _, rest = text.partition(begin)
            text = f"{before}{begin}\n\n{made()}\n\n{end}{rest.partition(end)[2]}"
    return text


def main() -> None:
    """Write them."""
    for name in DOCUMENTS:
        path = ROOT / name
        path.write_text(filled(path.read_text()))


if __name__ == "__main__":
    main()
