"""Tables in TOML settings of other programs: added, found again, taken out."""

import pytest

from turnlog.errors import Invalid
from turnlog.machine.settings.toml import with_table, without_table

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
