"""The tests themselves run wherever somebody starts them."""

import signal
import subprocess
import sys
from pathlib import Path


def test_a_test_that_interrupts_a_program_does_so_in_the_background_of_a_script_too():
    def in_the_background() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    words = ["tests/cli/test_errors.py::test_ctrl_c_stops_a_real_process_quietly", "-n0", "-q", "-p", "no:randomly"]
    top = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=top,
        capture_output=True,
        preexec_fn=in_the_background,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()
