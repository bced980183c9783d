"""Faults in `formats`."""

from tests.mutants.mutant import Mutant

GROWTH = "tests/formats/test_growth.py"

MUTANTS = [
    Mutant(
        "crush: the cost of a subagent is counted twice",
        "formats/crush.py",
        """ and parent is None:""",
        """:""",
        ("tests/formats/test_crush.py",),
    ),
    Mutant(
        "adapter: lines are exported as they were, whatever was said since",
        "formats/claude_code/mirror.py",
        "    return entry.is_node and not is_mirrored(entry)",
        "    return False",
        ("tests/formats/test_mirror.py",),
    ),
    Mutant(
        "adapter: a line that is handed over happens when it is handed over",
        "formats/claude_code/mirror.py",
        "return entries if at is None else",
        "return entries if True else",
        ("tests/formats/test_mirror.py",),
    ),
    Mutant(
        "adapter: results beside a text are said twice",
        "formats/claude_code/writing.py",
        "            return fields(message.meta)[LINE] is None  # the line behind it has it as well",
        "            return False",
        ("tests/formats/test_mirror.py",),
    ),
    Mutant(
        "what opencode clears later in its database is not noticed",
        "formats/opencode/storage.py",
        "touched.add(_touched(row))",
        'touched.add("")',
        ("tests/formats/test_opencode_growth.py",),
    ),
    Mutant(
        "a log of events that opencode began anew is taken for the one that was read",
        "formats/opencode/storage.py",
        'if first is None or (first["seq"], first["id"]) != (place.seq, place.event):',
        'if first is None or first["seq"] != place.seq:',
        ("tests/formats/test_opencode_growth.py",),
    ),
    Mutant(
        "what Copilot CLI spent before the place where reading goes on is booked again",
        "formats/copilot_cli.py",
        "self._counted = dict(state.counted)",
        "self._counted: dict[str, Usage] = {}",
        (GROWTH,),
    ),
    Mutant(
        "a late result of Copilot CLI loses the name of its tool",
        "formats/copilot_cli.py",
        'self._points.require(str(data.get("toolCallId")) in self._names)',
        "pass",
        (GROWTH,),
    ),
    Mutant(
        "what goes on far behind in a file of Qwen Code is hung on the newest record",
        "formats/qwen_code.py",
        "            self._points.require(is_there)\n",
        "            pass\n",
        (GROWTH,),
    ),
    Mutant(
        "what is told ahead of an answer is spent twice",
        "formats/kimi/code.py",
        "        if self._step is None:\n            yield from self._uncarried()\n",
        "        yield from self._uncarried()\n",
        ("tests/formats/test_small_agents.py",),
    ),
]
