"""The guide to costs shows what works."""

import re
from pathlib import Path

import turnlog
from turnlog.wire import anthropic

GUIDE = Path(__file__).resolve().parents[2] / "docs/guide/costs.md"


def test_the_guide_runs(capsys):
    s = turnlog.open("memory:").create()
    for number in range(9):
        s.user(f"question {number}")
    names = {"s": s, "Usage": turnlog.Usage, "anthropic": anthropic, "entry": s.messages()[4]}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(block, names)
    assert names["cost"].own.micros == 1_200 * 3 + 9_000 * 3 // 10 + 300 * 15
    assert names["cost"].total.is_complete
    assert "Scope: " in capsys.readouterr().out
    assert names["step"].does == "nothing"
