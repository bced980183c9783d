"""docs/formats.md names every format, every loss, and nothing that is not in the code."""

import ast
import json
import re
from pathlib import Path

import pytest

from turnlog.exchange.exporting.writing import writing_of
from turnlog.formats import format_of, names

ROOT = Path(__file__).resolve().parents[2]
FORMATS = ROOT / "src" / "turnlog" / "formats"
MAIN = {
    "claude-code": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini-cli": "@google/gemini-cli",
    "opencode": "opencode-ai",
    "pi": "@earendil-works/pi-coding-agent",
}
"""Those that are written as conversations, and what npm calls them."""
IN_RESULT = " in a tool result"


def sections() -> dict[str, str]:
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    found = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return {head: body for head, _, body in (part.partition("\n") for part in found)}


def parts(section: str) -> dict[str, str]:
    """What each part says, on one line."""
    found = re.split(r"^\*\*(\w+)\.\*\* ", section, flags=re.MULTILINE)
    return {name: " ".join(said.split()) for name, said in zip(found[1::2], found[2::2], strict=True)}


def words(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", " ".join(text.split())))


def table() -> set[str]:
    """The losses that are counted the same way for all."""
    rows = [line for line in sections()["What holds for all"].splitlines() if line.startswith("| `")]
    return {word for row in rows for word in words(row.split("|")[1])}


def strings(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def folder_of(name: str) -> Path:
    """The folder of a format that is one."""
    folder = FORMATS / name.replace("-", "_")
    return folder if folder.is_dir() else FORMATS / "seeds" / name


def in_code(*files: Path) -> set[str]:
    found = set[str]()
    for file in files:
        found |= strings(ast.parse(file.read_text(encoding="utf-8")))
    return found | {f"{word}{IN_RESULT}" for word in ("image", "file")} if IN_RESULT in found else found


def test_every_format_has_its_section_and_no_other_is_there():
    assert sorted(sections()) == sorted([*names(), "What holds for all"])


@pytest.mark.parametrize("name", names())
def test_a_section_says_what_is_read_written_lost_and_learned_and_when(name: str):
    said, form = parts(sections()[name]), format_of(name)
    assert said.keys() >= {"Read", "Written", "Lost", "Learned"}
    assert (said["Written"] == "Nothing.") is (form.write is None)
    assert ("Resumed" in said) is (form.write is not None or form.resume is not None)
    assert re.search(r"\b202\d-\d\d", said["Learned"])


@pytest.mark.parametrize("name", [name for name in names() if format_of(name).resume])
def test_a_section_says_how_it_is_resumed(name: str, tmp_path: Path):
    told, path = parts(sections()[name])["Resumed"], str(tmp_path / "PATH")
    resuming = format_of(name).resume
    assert resuming is not None
    command = resuming.command("ID", path, str(tmp_path))
    said = command[-1] if command[0] == "sh" else " ".join(command)
    for part in said.replace(path, "FILE" if command[0] == "sh" else "PATH").split(" && "):
        assert f"`{part}`" in told


@pytest.mark.parametrize("name", [name for name in names() if format_of(name).write])
def test_every_loss_that_is_named_is_in_the_code(name: str):
    named = words(parts(sections()[name])["Lost"])
    files = sorted(folder_of(name).glob("*.py"))
    assert named
    assert named <= in_code(*files, FORMATS / "_shared" / "losses.py", FORMATS / "_shared" / "tally.py")


@pytest.mark.parametrize("name", MAIN)
def test_every_loss_in_the_code_is_named(name: str):
    named = words(parts(sections()[name])["Lost"])
    every = set[str]().union(*(words(parts(sections()[main])["Lost"]) for main in MAIN))
    there = in_code(folder_of(name) / "writing.py")
    assert (there & every) - table() <= named


@pytest.mark.parametrize("name", MAIN)
def test_what_an_agent_carries_is_named(name: str):
    """What is only told in part is named, too, unless it is told like any other loss."""
    room = name.replace("-", "_")
    tree = ast.parse((folder_of(room) / "writing.py").read_text(encoding="utf-8"))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    told = set[str]().union(*(strings(n.args[0]) for n in calls if ast.unparse(n.func) == "self.tally.add"))
    writing = writing_of(format_of(name), name)
    assert writing.carried
    assert writing.carried - told <= words(parts(sections()[name])["Lost"])


def test_the_table_has_what_is_counted_the_same_way_for_all():
    tree = ast.parse((FORMATS / "_shared" / "losses.py").read_text(encoding="utf-8"))
    counted = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in ("_of_messages", "_of_session", "_beside_path"):
            [made] = [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and isinstance(n.value, ast.Dict)]
            counted |= {key.value for key in made.keys if isinstance(key, ast.Constant)}
    assert counted == table()


@pytest.mark.parametrize("name", MAIN)
def test_what_was_recorded_is_of_the_version_that_is_pinned(name: str):
    pinned = json.loads((ROOT / "tests" / "agents" / "package.json").read_bytes())["dependencies"][MAIN[name]]
    assert pinned in parts(sections()[name])["Learned"]
