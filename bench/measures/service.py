"""A service with 1,000 tenants and 200 sessions at once on one event loop, killed under load, and its server as well.

The reference is the loop itself: of the moments at which it was more than 50 ms late, those count during which it was
in code of Turnlog. On a machine that others use as well, it is late for want of a processor, too.
"""

from pathlib import Path

from bench.ground import Ground
from bench.measures import Row
from bench.server import SETTINGS
from tests.pgbouncer import PROGRAM
from tests.pgserver import Server
from tests.store.servicelab import lived

TITLE = "a service of many tenants"
TENANTS, SESSIONS, SECONDS = 1_000, 200, 30.0


def measure(ground: Ground) -> list[Row]:
    ground.folder.chmod(0o711)
    return [_row(ground.folder, pooled=pooled) for pooled in ((False, True) if PROGRAM else (False,))]


def _row(folder: Path, *, pooled: bool) -> Row:
    out = folder / f"service-{pooled}"
    out.mkdir()
    server = Server(inside=folder, **{**SETTINGS, "max_connections": "100"})
    try:
        found, hearts, connections = lived(
            server, out, pooled=pooled, tenants=TENANTS, sessions=SESSIONS, seconds=SECONDS
        )
    finally:
        server.remove()
    way = "through PgBouncer" if pooled else "without a pooler"
    return Row(
        f"{SESSIONS} sessions of {TENANTS:,} tenants at once, {way}: the loop late because of us",
        f"{hearts['late_ours']:,.0f} of {hearts['beats']:,.0f} beats, at most {hearts['worst_ours_ms']:.0f} ms",
        f"late for any reason: {hearts['late']:,.0f}, at most {hearts['worst_ms']:.0f} ms",
        hearts["worst_ours_ms"],
        "ms",
        50.0,
        facts={**hearts, "connections": connections, **found._asdict()},
        note=f"{found.acknowledged:,} messages acknowledged, none lost, doubled or seen by another tenant; "
        f"{connections} connections",
    )
