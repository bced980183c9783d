"""LangGraph's own tests of graphs, with our saver in the place of those of SQLite: what passes with theirs passes."""

from tests.adapters import theirs

SKIPPED = {"tests.test_remote_graph": "skipped"}
"""They leave it out themselves: it needs a server."""


def test_the_graph_tests_of_langgraph(tmp_path):
    settings = {"NO_DOCKER": "true", "LANGSMITH_TRACING": "false"}
    found = theirs.run("langgraph", tmp_path, ["tests"], "-o", "addopts=", "-n", "2", **settings)
    assert {name: how for name, how in found.items() if how != "passed"} == SKIPPED
    assert len(found) == 1011
