"""Tables in TOML settings of other programs: added, found again, taken out."""

import sys

import pytest

from turnlog.errors import Corrupt, Invalid
from turnlog.machine.settings.toml import toml_value, with_table, without_table

PATH = ("mcp_servers", "turnlog")
OURS = '[mcp_servers.turnlog]\ncommand = "x"\n'


@pytest.mark.parametrize(
    "rest",
    [
        '[tui]\ntheme = "d"\n',
        "[[profiles]]\na = 1\n",
        "# about what follows\n[tui]\n",
        "\n[tui]\n",
        '[mcp_servers.other]\nargs = [\n["a"],\n["b"],\n]\n',
    ],
)
def test_what_follows_a_table_stays(rest: str) -> None:
    assert without_table(OURS + rest, PATH) == rest
    assert without_table(f"a = 1\n\n{OURS}{rest}", PATH) == f"a = 1\n{rest}"


def test_a_list_on_several_lines_goes_with_its_table() -> None:
    table = '[mcp_servers.turnlog]\nargs = [\n  ["a"],\n  ["b"],\n]\n[mcp_servers.turnlog.env]\nA = "1"\n'
    assert without_table(table + "[tui]\n", PATH) == "[tui]\n"


def test_what_is_added_is_taken_out_again() -> None:
    before = 'model = "m"\n[tui]\n'
    after = with_table(before, PATH, {"command": "x", "args": ["mcp"]})
    assert without_table(after, PATH) == before


def test_one_without_a_header_of_its_own_is_refused() -> None:
    with pytest.raises(Invalid, match="has no header of its own"):
        without_table('[mcp_servers]\nturnlog = { command = "x" }\n', PATH)


@pytest.mark.parametrize("value", ["[" * 5 * sys.getrecursionlimit(), "1" * 5_000, "2026-13-45"])
def test_what_python_cannot_read_is_refused_and_no_fault(value: str) -> None:
    with pytest.raises(Corrupt):
        toml_value(f"a = {value}")


@pytest.mark.parametrize("text", ["[[mcp_servers]]\na = 1\n", "mcp_servers = {}\n", "mcp_servers = 3\n"])
def test_a_table_is_not_put_where_another_value_stands(text: str) -> None:
    with pytest.raises(Invalid, match="stands where it cannot be changed safely") as caught:
        with_table(text, PATH, {"command": "x"})
    assert caught.value.hint == "change it by hand"


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_a_header_in_a_text_is_none(quotes: str) -> None:
    before = f"note = {quotes}\n[mcp_servers.turnlog]\n{quotes}\n"
    after = with_table(before, PATH, {"command": "x"})
    assert without_table(after, PATH) == before
