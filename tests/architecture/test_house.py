"""The rules of the house that no other tool keeps."""

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import turnlog
from tests.architecture.map import tree_of
from tests.mutants import MUTANTS
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "turnlog"
MODULES = sorted(SRC.rglob("*.py"))

MAX_LINES = 400
# Path below src/turnlog -> why it may be longer.
LONGER: dict[str, str] = {}

FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc", "base", "manager", "core", "service"}

# What `import turnlog` leaves alone, so that starting costs next to nothing.
NOT_AT_IMPORT = {"asyncio", "click", "dataclasses", "logging", "msgspec", "pathlib", "typing", "zstandard"}

# The dots are left out, so that this file passes its own test.
REGISTRIES = ("pypi org", "pythonhosted org", "npmjs org", "npmjs com", "crates io")
MACHINE_FOLDERS = ("work", "root")
FOREIGN_TEXT = re.compile(
    "|".join(
        [
            *(re.escape(host.replace(" ", ".")) for host in REGISTRIES),
            *(rf"(?<![\w.~/-])/{folder}/" for folder in MACHINE_FOLDERS),
        ]
    ).encode()
)


def below_src(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def test_modules_stay_small():
    lines = {below_src(path): len(path.read_bytes().splitlines()) for path in MODULES}
    too_long = {name: n for name, n in lines.items() if n > MAX_LINES and name not in LONGER}
    assert not too_long, f"over {MAX_LINES} lines; look for a seam"


def test_every_exception_to_the_size_is_still_needed():
    for name, reason in LONGER.items():
        assert reason
        assert len((SRC / name).read_bytes().splitlines()) > MAX_LINES, f"{name} is small again"


def test_what_the_tests_stand_on_stays_small():
    machines = [path for folder in ("tests", "bench") for path in (ROOT / folder).rglob("*.py") if not is_test(path)]
    lines = {path.relative_to(ROOT).as_posix(): len(path.read_bytes().splitlines()) for path in machines}
    assert {name: n for name, n in lines.items() if n > MAX_LINES} == {}


def is_test(path: Path) -> bool:
    return path.name.startswith("test_") or "node_modules" in path.parts


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_fault_has_its_place(mutant: Mutant):
    assert (SRC / mutant.path).read_text(encoding="utf-8").count(mutant.old) == 1
    assert all((ROOT / test.partition("::")[0]).exists() for test in mutant.tests)


def test_compression_is_behind_one_module():
    importing = {path.name for path in MODULES if re.search(r"^\s*(import|from) zstandard", path.read_text(), re.M)}
    assert importing == {"zstd.py"}


def test_no_module_has_a_name_that_says_nothing():
    for path in MODULES:
        parts = set(path.relative_to(SRC).with_suffix("").parts)
        assert not parts & FORBIDDEN_NAMES, f"{below_src(path)}: name it after what it is"


def test_the_public_names_are_sorted_and_exist():
    assert list(turnlog.__all__) == sorted(set(turnlog.__all__))
    missing = [name for name in turnlog.__all__ if not hasattr(turnlog, name)]
    assert not missing


def test_nothing_public_is_left_out_of_all():
    by_import = {"annotations", "TYPE_CHECKING"}
    public = {
        name
        for name in dir(turnlog)
        if not name.startswith("_") and name not in by_import and not isinstance(getattr(turnlog, name), ModuleType)
    }
    assert public <= set(turnlog.__all__)


def test_the_public_names_come_with_a_star_import():
    names: dict[str, object] = {}
    exec("from turnlog import *", names)
    assert set(turnlog.__all__) <= set(names)


WRITES_STDERR = {
    "cli/frame/notes.py": "the one voice for people",
    "cli/errorline.py": "prints an error as JSON",
    "cli/frame/stdio.py": "puts the stream in order before a command runs",
    "cli/frame/progress.py": "a line that is drawn over, without an end",
    "cli/frame/question.py": "a question and its answer are on one line",
    "cli/statusline.py": "loads next to nothing, and speaks only with TURNLOG_DEBUG",
}
# What may be asked of the stream elsewhere: nothing of this prints.
ASKED_OF_STDERR = {"isatty", "flush", "fileno"}
ONLY_COLOURS = {"coloured", "summary_lines", "painted"}


def stderr_is_printed_to(source: str) -> list[int]:
    """The lines where a module takes stderr for anything but its properties."""
    tree = ast.parse(source)
    harmless: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ASKED_OF_STDERR:
            harmless.add(id(node.value))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ONLY_COLOURS:
            harmless.update(map(id, node.args))
    streams = [node for node in ast.walk(tree) if ast.unparse(node) in {"sys.stderr", "sys.__stderr__"}]
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "sys"]
    return sorted(
        {node.lineno for node in streams if isinstance(node, ast.Attribute) and id(node) not in harmless}
        | {node.lineno for node in imported if any("stderr" in name.name for name in node.names)}
    )


def test_the_command_line_has_one_voice_on_stderr():
    """What `frame/notes.py` prints is made safe and wrapped; a `print` of its own can forget both."""
    modules = [path for path in MODULES if below_src(path).startswith("cli/")]
    printing = {below_src(path): lines for path in modules if (lines := stderr_is_printed_to(path.read_text()))}
    assert {name: lines for name, lines in printing.items() if name not in WRITES_STDERR} == {}
    assert set(WRITES_STDERR) == set(printing), "an exception that is not needed any more"


@pytest.mark.parametrize(
    ("source", "is_printing"),
    [
        ("print(1, file=sys.stderr)", True),
        ("sys.stderr.write(x)", True),
        ("show(lines, sys.stderr)", True),
        ("from sys import stderr", True),
        ("sys.stderr.isatty()", False),
        ("coloured(x, 'dim', sys.stderr)", False),
    ],
)
def test_a_second_voice_would_be_heard(source: str, is_printing: bool):
    assert bool(stderr_is_printed_to(source)) is is_printing


def swallows(handler: ast.ExceptHandler) -> bool:
    """Whether the handler catches everything, by name or by default, and says nothing of it."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if None in caught:
        return True
    broad = any(isinstance(error, ast.Name) and error.id in {"Exception", "BaseException"} for error in caught)
    return broad and all(
        isinstance(statement, ast.Pass | ast.Continue)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in handler.body
    )


@pytest.mark.parametrize("path", MODULES, ids=below_src)
def test_no_error_is_swallowed(path: Path):
    tree = tree_of(path)
    lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and swallows(node)]
    assert not lines, f"{below_src(path)}: catch the errors you expect"


def test_what_a_type_checker_sees_is_what_there_is():
    """The package imports its names when they are used, and says where they are a second time for type checkers."""
    tree = ast.parse((SRC / "__init__.py").read_bytes())
    told = {
        name.asname or name.name: (node.module, name.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("turnlog.")
        for name in node.names
    }
    assert set(told) == set(turnlog.__all__)
    for name, (module, attribute) in told.items():
        assert getattr(turnlog, name) is getattr(importlib.import_module(module), attribute), name
    with pytest.raises(AttributeError, match="no attribute 'Sesion'"):
        _ = turnlog.Sesion  # pyright: ignore[reportAttributeAccessIssue]


def test_importing_turnlog_is_light():
    program = (
        "import sys, json; before = set(sys.modules); import turnlog; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, check=True, text=True)
    imported = set(json.loads(done.stdout))
    assert "turnlog" in imported
    assert not imported & NOT_AT_IMPORT


def repository_files() -> list[Path]:
    """Everything git tracks or would offer to add."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def test_the_repository_names_no_registry_and_no_machine():
    found = [
        f"{path.relative_to(ROOT)}: {match.group().decode()}"
        for path in repository_files()
        for match in FOREIGN_TEXT.finditer(path.read_bytes())
    ]
    assert not found
