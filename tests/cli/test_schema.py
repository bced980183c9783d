"""What `--json` really prints is what `turnlog api` says it prints."""

import json
from pathlib import Path

import pytest

from tests.cli.every import NAMES, prepare, words_for
from tests.cli.machine import three_agents
from tests.cli.printed import check_document
from tests.cli.scene import Cli


@pytest.mark.parametrize("name", NAMES)
def test_real_output_is_what_the_schema_says(name: str, cli: Cli, session: str):
    prepare(cli, name)
    done = cli(name, "--json", *words_for(name))
    assert done.code == 0, done.err
    check_document(name, json.loads(done.out.splitlines()[0] if name == "watch" else done.out))
    assert done.err == ""


MORE = [
    ["search", "the", "--sort", "relevance"],
    ["ls", "--all", "--hidden"],
    ["usage", "--by", "session"],
    ["show", "CLAUDE", "--context"],
    ["show", "CODEX"],
    ["log", "CODEX"],
    ["tree", "GEMINI"],
    ["doctor"],
    ["import", "GEMINI"],
    ["run", "--", "touch", "new"],
    ["diff"],
    ["checkpoints"],
    ["rewind", "--yes"],
    ["hooks", "install", "--all", "--dry-run", "--anyway"],
    ["keep", "claude-code"],
    ["api", "search"],
    ["api", "--guide", "--as", "skill"],
    ["resume", "--in", "codex", "CLAUDE"],
    ["export", "--to", "markdown", "CLAUDE"],
]
"""What more there is in a document when agents have worked here."""


def test_so_is_what_agents_wrote(cli: Cli, folder: Path, session: str):
    three_agents(Path.home(), Path.cwd())
    listed = json.loads(cli("ls", "--all", "--json").out)["sessions"]
    ids = {agent.partition("-")[0].upper(): id for agent, id in ((card["agent"], card["id"]) for card in listed)}
    for words in MORE:
        name, *rest = (ids.get(word, word) for word in words)
        done = cli(name, "--json", *rest)
        assert done.code == 0, done.err
        check_document(name, json.loads(done.out))
