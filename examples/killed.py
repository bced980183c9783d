"""What a kill -9 does to the example agent: nothing that matters. Part of `make demo`.

python examples/killed.py
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

AGENT = Path(__file__).with_name("agent.py")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="turnlog-agent-") as place:
        folder = Path(place, "work")
        folder.mkdir()
        surroundings = {**os.environ, "TURNLOG_HOME": str(Path(place, "home"))}
        command = [sys.executable, str(AGENT), "--folder", str(folder)]
        print('\n── A coding agent in 120 lines ──\n\n$ python examples/agent.py "make a greeting"')
        with subprocess.Popen(
            [*command, "--pause", "0.5", "make a greeting"], env=surroundings, stdout=-1, text=True
        ) as it:
            assert it.stdout is not None
            for line in it.stdout:
                print(f"   {line}", end="")
                if line.startswith("bash"):
                    os.kill(it.pid, signal.SIGKILL)
                    print(f"\n   $ kill -9 {it.pid}\n")
        print("$ python examples/agent.py")
        done = subprocess.run(command, env=surroundings, stdout=-1, text=True, check=True)
        print("   " + done.stdout.replace("\n", "\n   ").rstrip())
        assert it.returncode == -signal.SIGKILL, "the agent was not killed"
        assert (folder / "greeting.txt").read_text() == "hello from greet.py\n", "the work was not done"
        print("   ✓ killed in the middle of a tool, it went on where it was")


if __name__ == "__main__":
    main()
