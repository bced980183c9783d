"""Faults in `reader`."""

from tests.mutants.mutant import Mutant

WEB_FILES = "tests/web/test_files.py"
WEB_PAGES = "tests/web/test_pages.py"
SPANS = "tests/reader/test_telemetry.py"

MUTANTS = [
    Mutant(
        "files are those of an import that has none",
        "reader/naming/here.py",
        "if _has_checkpoint(home, id)",
        "if id",
        ("tests/cli/test_here.py",),
    ),
    Mutant(
        "web: a rewind of another plan than the one on the page",
        "reader/takeback.py",
        "        if stamp != proposed.stamp:",
        "        if not stamp:",
        (WEB_FILES,),
    ),
    Mutant(
        "web: a result is parted from its call",
        "reader/viewing/conversation.py",
        """if not (self._awaits_results and (not is_node or kind == "tool")):""",
        "if not (self._awaits_results and not is_node):",
        (WEB_PAGES, "tests/reader/test_conversation.py"),
    ),
    Mutant(
        "spans: what is not shown is looked through, and counted as taken out",
        "reader/export/otel/telemetry.py",
        "shown = entry if self.has_content else bare(entry)",
        "shown = entry",
        (SPANS,),
    ),
    Mutant(
        "spans: a fork tells what it inherited",
        "reader/export/otel/telemetry.py",
        "session.entries(after=history.inherited_to)",
        "session.entries()",
        (SPANS,),
    ),
    Mutant(
        "spans: a collector that is busy is not asked again",
        "reader/export/otel/collector.py",
        "if reply.status not in _BUSY or attempt == _TRIES",
        "if reply.status not in (503,) or attempt == _TRIES",
        ("tests/reader/test_collector.py",),
    ),
    Mutant(
        "reader: a turn is what stands between two beginnings",
        "reader/place.py",
        "    if numbers:\n        turn = next(",
        "    if False:\n        turn = next(",
        ("tests/mcp/test_server.py",),
    ),
    Mutant(
        "reader: a replaced session stays open",
        "reader/viewing/desk.py",
        "                replaced.close()\n",
        "                pass\n",
        ("tests/reader/test_desk.py",),
    ),
    Mutant(
        "reader: what comes back from a branch is nothing to do",
        "reader/takeback.py",
        "(self.plan.to_do or self.leaving or self.returning)",
        "(self.plan.to_do or self.leaving)",
        ("tests/reader/test_takeback.py",),
    ),
    Mutant(
        "reader: only messages are looked for on other branches",
        "reader/part.py",
        "    head = _branch_with(session, seq, head)\n",
        "",
        ("tests/reader/test_part.py",),
    ),
]
