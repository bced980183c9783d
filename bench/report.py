"""What `bench.peers` prints and saves. Results hold no paths and no host names."""

import json
import os
import platform
import sqlite3
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
MEASURES = {
    "append": ("append_per_s", "msg/s", "more"),
    "full load": ("load_ms", "ms", "less"),
    "tail 50": ("tail_ms", "ms", "less"),
}


def machine(folder: Path) -> dict[str, Any]:
    return {
        "cpus": os.cpu_count(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "filesystem": _filesystem(folder.resolve()),
    }


def result(rows: list[dict[str, Any]], *, machine: dict[str, Any], messages: int) -> dict[str, Any]:
    raw = next(row for row in rows if row["name"].startswith("raw"))
    for row in rows:
        row["ratio_to_raw"] = row["append_per_s"] / raw["append_per_s"]
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "messages": messages,
        "machine": machine,
        "rows": rows,
        "verdicts": _verdicts(rows),
    }


def render(result: dict[str, Any]) -> str:
    facts = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    lines = [
        f"# Peers, {result['at'][:10]}, commit {result['commit']}",
        "",
        f"One session, {result['messages']:,} messages, one append per message. {facts}.",
        "Append: the round with the middle rate. p50/p99: of its first and last 200 appends. "
        "Loads: fresh handle, warm page cache, median of 5, then of the rounds.",
        "",
        *_table(result["rows"]),
        "",
        "`*` no way to ask for the tail: everything is loaded and cut.",
        "",
        *[f"- {_sentence(verdict)}" for verdict in result["verdicts"]],
        "",
        _conclusion(result),
    ]
    return "\n".join(lines) + "\n"


def save(result: dict[str, Any], text: str, folder: Path, name: str = "peers") -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{result['at'][:10]}-{result['commit']}"
    paths = [folder / f"{stem}.json", folder / f"{stem}.md"]
    paths[0].write_text(json.dumps(result, indent=2) + "\n")
    paths[1].write_text(text)
    return paths


def _table(rows: list[dict[str, Any]]) -> list[str]:
    head = ("peer", "version", "messages", "rounds", "append msg/s", "all rounds", "x raw", "start p50/p99 ms")
    head += ("end p50/p99 ms", "full load ms", "tail 50 ms", "disk MB", "durability")
    lines = [_cells(head), _cells(["---"] * len(head))]
    lines += [_cells(_row(row)) for row in rows]
    return lines


def _row(row: dict[str, Any]) -> list[str]:
    return [
        row["title"],
        row["version"] or "-",
        f"{row['messages']:,}",
        str(row["rounds"]),
        _number(row["append_per_s"]),
        _range([one["append_per_s"] for one in row["all_rounds"]]),
        f"{row['ratio_to_raw']:.3f}",
        f"{row['start_ms']['p50']:.2f} / {row['start_ms']['p99']:.2f}",
        f"{row['end_ms']['p50']:.2f} / {row['end_ms']['p99']:.2f}",
        _number(row["load_ms"]),
        _number(row["tail_ms"]) + ("" if row["can_tail"] else " *"),
        f"{row['disk_bytes'] / 1e6:.3g}" if row["disk_bytes"] > 1e5 else "-",
        row["durability"],
    ]


def _cells(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _verdicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ours = next((row for row in rows if row["name"].startswith("turnlog")), None)
    if ours is None:
        return []
    peers = [row for row in rows if not row["name"].startswith(("raw", "turnlog"))]
    return [_verdict(ours, peer, measure) for peer in peers for measure in MEASURES]


def _verdict(ours: dict[str, Any], peer: dict[str, Any], measure: str) -> dict[str, Any]:
    key, unit, better = MEASURES[measure]
    times = ours[key] / peer[key] if better == "more" else peer[key] / ours[key]
    our_rounds = [row[key] for row in ours["all_rounds"]]
    their_rounds = [row[key] for row in peer["all_rounds"]]
    return {
        "peer": peer["title"],
        "measure": measure,
        "faster": _answer(our_rounds, their_rounds, better),
        "times": times,
        "ours": ours[key],
        "theirs": peer[key],
        "unit": unit,
        "our_rounds": our_rounds,
        "their_rounds": their_rounds,
        "same_messages": ours["messages"] == peer["messages"],
        "peer_durability": peer["durability"],
    }


def _answer(ours: list[float], theirs: list[float], better: str) -> str:
    # Only when every round of one beats every round of the other; a middle value is not enough.
    if min(ours) <= max(theirs) and min(theirs) <= max(ours):
        return "UNCLEAR"
    return "yes" if (min(ours) > max(theirs)) == (better == "more") else "NO"


def _sentence(verdict: dict[str, Any]) -> str:
    text = (
        f"turnlog faster than {verdict['peer']} on {verdict['measure']}: {verdict['faster']}, "
        f"{verdict['times']:.2f}x ({_number(verdict['ours'])} against "
        f"{_number(verdict['theirs'])} {verdict['unit']})"
    )
    if verdict["faster"] == "UNCLEAR":
        text += f"; rounds overlap: {_range(verdict['our_rounds'])}, {_range(verdict['their_rounds'])}"
    if not verdict["same_messages"]:
        text += "; not of the same number of messages"
    if verdict["faster"] != "yes":
        text += f"; peer: {verdict['peer_durability']}"
    return text


def _conclusion(result: dict[str, Any]) -> str:
    verdicts = result["verdicts"]
    if not verdicts:
        return "No verdict: turnlog or its peers were left out of this run."
    lines = [
        f"turnlog faster than: {answer} for {names}."
        for answer in ("NO", "UNCLEAR")
        if (names := _names(verdicts, answer))
    ]
    return "\n".join(lines) or "turnlog is faster than every peer on every measure."


def _names(verdicts: list[dict[str, Any]], answer: str) -> str:
    found = [verdict for verdict in verdicts if verdict["faster"] == answer]
    return "; ".join(f"{verdict['peer']} on {verdict['measure']}" for verdict in found)


def _range(values: list[float]) -> str:
    return f"{_number(min(values))} to {_number(max(values))}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def commit() -> str:
    def git(*args: str) -> str | None:
        done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None

    found = git("rev-parse", "--short", "HEAD")
    if found is None:
        return "uncommitted"
    # Numbers of a tree that nobody can check out again must say so.
    changed = git("status", "--porcelain", "--", "src", "bench", ":(exclude)bench/results")
    return f"{found}-dirty" if changed else found


def _filesystem(folder: Path) -> str:
    best, kind = "", "unknown"
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return kind
    for line in mounts:
        _, at, found, *_ = line.split(" ")
        if len(at) >= len(best) and folder.is_relative_to(at):
            best, kind = at, found
    return kind
