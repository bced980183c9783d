"""What `python -m bench` prints and saves. Results hold no paths and no host names."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import report
from bench.measures import Row


def result(rows: list[Row], *, machine: dict[str, Any], load: list[float], took_s: float) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": report.commit(),
        "machine": machine,
        "load": [round(value, 2) for value in load],
        "took_s": round(took_s),
        "rows": [_plain(row) for row in rows],
    }


def _plain(row: Row) -> dict[str, Any]:
    return {
        "measure": row.measure,
        "subject": row.subject,
        "reference": row.reference,
        "value": row.value,
        "unit": row.unit,
        "bar": row.bar,
        "at_least": row.at_least,
        "is_met": row.is_met,
        "spread": row.spread,
        "rounds": list(row.rounds),
        "note": row.note,
        **row.facts,
    }


def render(result: dict[str, Any]) -> str:
    facts = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    head = ("measure", "subject", "reference", "result", "spread", "bar", "verdict")
    missed = [row for row in result["rows"] if not row["is_met"]]
    before, after = result["load"]
    # One task is us.
    busy = " THE MACHINE WAS BUSY: run it again." if max(before, after - 1) > 0.75 * result["machine"]["cpus"] else ""
    lines = [
        f"# Turnlog, {result['at'][:10]}, commit {result['commit']}",
        "",
        f"{facts}; load {before} before the run of {result['took_s']} s, {after} after it.{busy}",
        "Subject and reference take turns; the result is the median of the rounds, the spread their middle half.",
        "",
        _cells(head),
        _cells(["---"] * len(head)),
        *[_cells(_row(row)) for row in result["rows"]],
        "",
        "Every bar is met." if not missed else "NOT MET: " + "; ".join(row["measure"] for row in missed) + ".",
        "",
        *[f"- {row['measure']}: {note}." for row in result["rows"] for note in (row["note"], _doubt(row)) if note],
    ]
    return "\n".join(lines) + "\n"


def save(result: dict[str, Any], text: str, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"turnlog-{result['at'][:10]}-{result['commit']}"
    paths = [folder / f"{stem}.json", folder / f"{stem}.md"]
    paths[0].write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    paths[1].write_text(text, encoding="utf-8")
    return paths


def _row(row: dict[str, Any]) -> list[str]:
    spread = row["spread"]
    sign = "≥" if row["at_least"] else "≤"
    return [
        row["measure"],
        row["subject"],
        row["reference"],
        _value(row["value"], row["unit"]),
        "-" if spread is None else f"{spread[0]:.3g} to {spread[1]:.3g}",
        f"{sign} {_value(row['bar'], row['unit'])}",
        "met" if row["is_met"] else "NOT MET",
    ]


def _doubt(row: dict[str, Any]) -> str:
    """Whether the middle half of the rounds lies on both sides of the bar."""
    spread = row["spread"]
    if spread is None or not spread[0] < row["bar"] < spread[1]:
        return ""
    return "the rounds lie on both sides of the bar; look at several runs"


def _value(value: float, unit: str) -> str:
    return f"{value:.3g}{'x' if unit == 'x' else ' ' + unit}"


def _cells(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"
