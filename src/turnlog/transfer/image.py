"""Sessions that came from the other side as forks: what they were made of there is not brought back."""

from __future__ import annotations

from collections.abc import Collection

from turnlog.errors import Corrupt, NotFound, Unsupported
from turnlog.log.entry import Fork
from turnlog.store import Listed, Store
from turnlog.transfer.agreement import are_same
from turnlog.transfer.outgoing import Outgoing, Shipment, origin_id, outgoing_of


def came_from(there: Store, sessions: Collection[Listed], here: Store, outgoing: Outgoing) -> Outgoing | None:
    """The session there that this one is an unchanged copy of, as it would be sent; None if this one has gone on."""
    try:
        image = _image_of(there, sessions, here, outgoing)
        return image if image is not None and _begins_like(image, outgoing) else None
    except (NotFound, Corrupt, Unsupported):
        return None  # what cannot be read is no reason to leave anything out


def _image_of(there: Store, sessions: Collection[Listed], here: Store, outgoing: Outgoing) -> Outgoing | None:
    """What this side would get of the session there that this one was once made of."""
    fork = outgoing.start.fork
    # A fork of the session that went on there; or one of before that had to get another id here.
    image = _called(there, outgoing, fork.session, fork.base, fork.seq) if fork is not None else None
    image = image or _called(there, outgoing, origin_id(outgoing.id), None, 0)
    if image is not None or fork is None:
        return image
    parent = here.open(fork.session, read_only=True, first=fork.base)
    above = _image_of(there, sessions, here, outgoing_of(here, parent))
    return None if above is None else _fork_of(there, sessions, outgoing, fork, above)


def _called(there: Store, outgoing: Outgoing, name: str, first: str | None, cut: int) -> Outgoing | None:
    try:
        log = there.open(name, read_only=True, first=first) if name else None
    except NotFound:
        return None
    return None if log is None else outgoing_of(there, log).as_called(outgoing.id, cut, second_of(outgoing))


def _fork_of(
    there: Store, sessions: Collection[Listed], outgoing: Outgoing, fork: Fork, above: Outgoing
) -> Outgoing | None:
    """Or it is a fork of something that became another one."""
    for listed in sessions:
        if listed.start is not None and listed.start.fork is not None:
            image = outgoing_of(there, there.open(listed.id, read_only=True, first=listed.first)).moved(
                fork.session, fork.base, above.cuts
            )
            if image.id == outgoing.id:
                return image
    return None


def _begins_like(whole: Outgoing, part: Outgoing) -> bool:
    shipments = (item for item in whole.lines() if isinstance(item, Shipment))
    for item in part.lines():
        if isinstance(item, Shipment) and ((other := next(shipments, None)) is None or not are_same(item, other)):
            return False
    return True


def second_of(outgoing: Outgoing) -> str:
    """The id of the first entry behind the first line: what a fork was made for."""
    lines = (item.entry.id for item in outgoing.lines() if isinstance(item, Shipment))
    next(lines, None)
    return next(lines, "")
