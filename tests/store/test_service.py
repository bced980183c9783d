"""A service of many tenants, killed and started again under load: nothing lost, nothing seen by others."""

import pytest

from tests.pgbouncer import PROGRAM, WHY_NOT, Bouncer
from tests.pgserver import Server
from tests.store.servicelab import Service, examine, founded

TENANTS, SESSIONS = 30, 12


@pytest.mark.skipif(PROGRAM is None, reason=WHY_NOT)
def test_nothing_is_lost_or_seen_by_others_when_the_service_is_killed(postgres: Server):
    """Through a pooler. Without one, with the server killed as well, and with a thousand tenants, it is in the soak."""
    database, role = founded(postgres)
    bouncer = Bouncer(postgres, role, size=4)
    location = bouncer.before(database).replace("postgres@", f"{role}@")
    service = Service(location, tenants=TENANTS, sessions=SESSIONS)
    try:
        service.until(80)
        service.kill()
        service.start()
        service.until(len(service.acks) + 80)
    finally:
        service.kill()
        bouncer.kill()
    found = examine(database, service.acks)
    assert found.entries >= found.acknowledged >= 160
    assert found.tenants > 1
