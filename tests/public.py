"""Public files of real agents. They lie beside the checkout where somebody has them: more cases, never other tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "shared" / "fixtures"
AGENTS, SEEDS = ROOT / "agents", ROOT / "seeds"


def public(*patterns: str) -> list[Path]:
    """Those of agents, in a steady order; none where there are none."""
    return sorted(path for pattern in patterns for path in AGENTS.glob(pattern))
