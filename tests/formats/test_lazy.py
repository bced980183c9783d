"""Reading a session loads nothing that writes one."""

import subprocess
import sys

PROGRAM = """
import sys
from turnlog.exchange.exporting.writing import writing_of
from turnlog.formats import format_of

for agent in ("claude-code", "codex", "gemini-cli", "opencode", "pi"):
    module = f"turnlog.formats.{agent.replace('-', '_')}.writing"
    form = format_of(agent)
    assert form.write is not None and module not in sys.modules, agent
    assert writing_of(form, agent).render and module in sys.modules, agent
"""


def test_what_writes_is_loaded_when_it_is_asked_for():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
