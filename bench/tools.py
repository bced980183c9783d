"""Turnlog beside other tools that look at agents' sessions, each asked the same as a whole process: `make bench-peers`.

One machine for all: the corpus of `bench.corpus`. Tools are used as their documentation says; what a tool has no
command for is not in the table, and a tool that is not installed, or fails, is named below it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import corpus, report
from bench.measures import say
from bench.measures.catalog import MB, SESSIONS, Machine

HERE = Path(__file__).parent
NODE = HERE / "node" / "node_modules" / ".bin"
ROUNDS = 5
_PATIENCE_S = 600


@dataclass(frozen=True)
class Question:
    """The same question to everybody, and how each is asked. A first answer is taken once, others in rounds."""

    title: str
    commands: dict[str, list[str]]
    is_first: bool = False
    notes: dict[str, str] = field(default_factory=dict)


def questions(newest: Path) -> list[Question]:
    daemon = "a daemon of its own answers"
    claude = "Claude Code's sessions only"
    prose = "without what tools printed"
    return [
        Question("start", {
            "turnlog": ["turnlog", "--version"], "agentsview": ["agentsview", "--version"],
            "claude-code-log": ["claude-code-log", "--version"], "ccusage": ["ccusage", "--version"],
            "fast-resume": ["fr", "--version"],
        }),
        Question("first index", {
            "turnlog": ["turnlog", "index"], "agentsview": ["agentsview", "sync"],
            "claude-session-search": ["cc-search", "--reindex"], "fast-resume": ["fr", "--rebuild"],
        }, is_first=True, notes={"claude-session-search": claude, "fast-resume": prose}),
        Question("nothing new: index again", {
            "turnlog": ["turnlog", "ls", "--all"], "agentsview": ["agentsview", "sync"],
            "claude-session-search": ["cc-search", "--reindex"],
        }, notes={"agentsview": daemon, "claude-session-search": claude}),
        Question("list sessions", {
            "turnlog": ["turnlog", "ls", "--all"], "agentsview": ["agentsview", "session", "list", "--limit", "500"],
            "fast-resume": ["fr", "--list", "--limit", "500"],
        }, notes={"agentsview": f"500 at most, {daemon}", "fast-resume": "500"}),
        Question("search, a rare word", {
            "turnlog": ["turnlog", "search", corpus.RARE],
            "agentsview": ["agentsview", "session", "search", corpus.RARE],
        }, notes={"agentsview": daemon}),
        Question("search, a common word", {
            "turnlog": ["turnlog", "search", corpus.COMMON],
            "agentsview": ["agentsview", "session", "search", corpus.COMMON],
            "fast-resume": ["fr", "--list", corpus.COMMON],
        }, notes={"agentsview": daemon, "fast-resume": f"sessions, {prose}"}),
        Question("usage by day", {
            "turnlog": ["turnlog", "usage"], "agentsview": ["agentsview", "usage", "daily"],
            "ccusage": ["ccusage", "daily", "--offline"],
        }, notes={"agentsview": daemon}),
        Question(f"one session of {newest.stat().st_size / 1e6:.1f} MB as a page", {
            "turnlog": ["turnlog", "export", str(newest), "--to", "html", "--force", "-o", "turnlog.html"],
            "claude-code-log": ["claude-code-log", str(newest), "-o", "claude-code-log.html"],
        }),
    ]  # fmt: skip


def program(name: str) -> str | None:
    """Where a program is: beside this Python, or installed by npm."""
    for folder in (Path(sys.executable).parent, NODE):
        if (folder / name).exists():
            return str(folder / name)
    return None


class Failed(Exception):
    """A tool did not answer."""


def ask(machine: Machine, words: list[str]) -> float:
    found = program(words[0])
    if found is None:
        raise Failed("it is not installed")
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [found, *words[1:]],
            env=machine.env,
            cwd=machine.made.home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"no answer in {_PATIENCE_S} s") from None
    took = time.perf_counter() - start
    if done.returncode:
        raise Failed((done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}").splitlines()[-1])
    return took


def measure(machine: Machine, question: Question) -> list[dict[str, Any]]:
    times: dict[str, list[float]] = {name: [] for name in question.commands}
    problems: dict[str, str] = {}
    for number in range(1 if question.is_first else ROUNDS + 1):
        for name, words in question.commands.items():
            if name in problems:
                continue
            try:
                took = ask(machine, words)
            except Failed as error:
                problems[name] = str(error).replace(str(machine.made.home), "~").replace(str(HERE), "bench")
                continue
            if question.is_first or number:  # the first round warms caches
                times[name].append(took)
            if took > 20 and not question.is_first:
                break
    return [
        {
            "question": question.title,
            "tool": name,
            "seconds": statistics.median(times[name]) if times[name] else None,
            "problem": problems.get(name, ""),
            "note": question.notes.get(name, ""),
        }
        for name in question.commands
    ]


def render(result: dict[str, Any]) -> str:
    facts = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    lines = [
        f"# Tools, {result['at'][:10]}, commit {result['commit']}",
        "",
        f"Whole processes on {result['sessions']:,} sessions of Claude Code and Codex, {result['mb']:.0f} MB. {facts}.",
        f"Versions: {', '.join(f'{name} {version}' for name, version in result['versions'].items())}.",
        "",
        "| question | tool | time | against turnlog |",
        "| --- | --- | --- | --- |",
    ]
    ours = {row["question"]: row["seconds"] for row in result["rows"] if row["tool"] == "turnlog"}
    for row in result["rows"]:
        if row["seconds"] is None:
            continue
        own = ours[row["question"]]
        verdict = "" if row["tool"] == "turnlog" or not own else _verdict(row["seconds"] / own)
        told = f"{row['tool']} ({row['note']})" if row["note"] else row["tool"]
        lines.append(f"| {row['question']} | {told} | {_seconds(row['seconds'])} | {verdict} |")
    failed = [f"- {row['tool']}, {row['question']}: {row['problem']}." for row in result["rows"] if row["problem"]]
    return "\n".join([*lines, "", *failed]) + "\n"


def _verdict(ratio: float) -> str:
    return f"turnlog is {ratio:.1f} times as fast" if ratio >= 1 else f"TURNLOG IS {1 / ratio:.1f} TIMES SLOWER"


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value >= 1 else f"{value * 1e3:.0f} ms"


def versions(machine: Machine) -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str] = {}
    for name in ("turnlog", "agentsview", "claude-session-search", "claude-code-log", "fast-resume"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    node = NODE.parent / "ccusage" / "package.json"
    found["ccusage"] = json.loads(node.read_text())["version"] if node.exists() else "not installed"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.tools", description=__doc__)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--mb", type=float, default=MB)
    parser.add_argument("--folder", type=Path, default=HERE, help="on the disk to measure")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix=".scratch-", dir=args.folder) as scratch:
        made = corpus.make(Path(scratch) / "machine", sessions=args.sessions, mb=args.mb)
        machine = Machine(made)
        machine.env["DO_NOT_TRACK"] = "1"
        rows: list[dict[str, Any]] = []
        try:
            for question in questions(made.newest):
                say(question.title)
                rows += measure(machine, question)
        finally:
            if program("agentsview"):
                ask(machine, ["agentsview", "daemon", "stop"])  # it leaves one behind
        result = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": report.commit(),
            "machine": report.machine(args.folder),
            "sessions": made.sessions,
            "mb": made.size_bytes / 1e6,
            "versions": versions(machine),
            "rows": rows,
        }
    text = render(result)
    print(text)
    args.results.mkdir(parents=True, exist_ok=True)
    stem = f"tools-{result['at'][:10]}-{result['commit']}"
    (args.results / f"{stem}.json").write_text(json.dumps(result, indent=2) + "\n")
    (args.results / f"{stem}.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
