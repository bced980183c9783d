"""The shape of the house: no cycles, no heaps, contracts that stay short, documents that say what there is."""

import ast
import re

import grimp
import pytest

from tests.architecture.map import DOCUMENTS, ROOT, SRC, filled, first_line, layers, rooms

MAX_FILES = 12
MAX_MEMBERS = 22
FOLDERS = (SRC, ROOT, ROOT / "tests" / "agents")


def cycles(graph: grimp.ImportGraph) -> list[set[str]]:
    """Sets of modules that import each other, by whatever way round."""
    below = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in below[module]:
            if other not in order:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], order[other])
        if low[module] == order[module]:
            place = stack.index(module)
            if len(stack) - place > 1:
                found.append(set(stack[place:]))
            del stack[place:]

    for module in below:
        if module not in order:
            visit(module)
    return found


def test_no_modules_import_each_other():
    """Imports for type checking are imports, too: whoever reads the one has to know the other."""
    assert cycles(grimp.build_graph("turnlog", cache_dir=None)) == []


def test_a_cycle_would_be_found():
    graph = grimp.ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")):
        graph.add_import(importer=importer, imported=imported)
    assert cycles(graph) == [{"a", "b", "c"}]


def test_the_drawing_has_every_room_in_its_layer():
    page = (ROOT / "docs" / "architecture.md").read_text()
    drawing = page.partition("```text\n")[2].partition("```")[0]
    drawn = [{line.split()[0] for line in part.splitlines() if line.strip()} for part in drawing.split("│\n")]
    assert drawn == [set(layer) for layer in layers()]


@pytest.mark.parametrize("room", [room for room in rooms() if (SRC / room).is_dir() and room not in ("formats",)])
def test_a_room_is_no_heap(room):
    """Its folders say what they hold; `commands` and the like hold one thing a file."""
    files = [path.name for path in (SRC / room).glob("*.py") if path.name != "__init__.py"]
    assert len(files) <= (MAX_FILES if room in ("session", "catalog", "cli", "reader", "view") else 20), files


def protocols() -> dict[str, list[str]]:
    """The public members of the protocols of a store."""
    tree = ast.parse((SRC / "store" / "__init__.py").read_bytes())
    return {
        node.name: [
            member.name
            for member in node.body
            if isinstance(member, ast.FunctionDef) and not member.name.startswith("_")
        ]
        for node in tree.body
        if isinstance(node, ast.ClassDef) and any("Protocol" in ast.unparse(base) for base in node.bases)
    }


def test_the_contract_of_a_store_stays_short():
    found = protocols()
    assert "Log" in found
    assert sum(map(len, found.values())) <= MAX_MEMBERS, found


# ── documents ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_lists_in_a_document_are_current(document):
    text = (ROOT / document).read_text()
    for name in DOCUMENTS[document]:
        assert f"<!-- {name}: written by" in text
    assert filled(text) == text, "run `python -m tests.architecture.map`"


@pytest.mark.parametrize("document", [*DOCUMENTS, "docs/recipes.md", "docs/glossary.md"])
def test_every_file_that_a_document_names_is_there(document):
    text = re.sub(r"<!-- map.*?<!-- end of map -->", "", (ROOT / document).read_text(), flags=re.DOTALL)
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    named = [name for name in re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/))`", text) if "<" not in name]
    missing = [name for name in named if not any((folder / name).exists() for folder in FOLDERS)]
    assert missing == []


def test_every_module_says_in_a_line_what_it_is():
    silent = [path.relative_to(SRC).as_posix() for path in SRC.rglob("*.py") if not first_line(path)]
    assert silent == []
