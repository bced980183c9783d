"""Faults in `adapters`, in what needs no framework."""

from tests.mutants.mutant import Mutant

SESSIONS = "tests/adapters/test_sessions.py"
RECENT = "tests/adapters/test_recent.py"
COMPOSITE_ID = "tests/adapters/test_compositeid.py"
ARGUMENT = "tests/adapters/test_argument.py"

MUTANTS = [
    Mutant(
        "adapters: a home that was given is closed",
        "adapters/_sessions.py",
        "        if self._is_own and self._home is not None:",
        "        if self._home is not None:",
        (SESSIONS,),
    ),
    Mutant(
        "adapters: what others have written is not seen",
        "adapters/_sessions.py",
        "                session.refresh()\n",
        "",
        (SESSIONS,),
    ),
    Mutant(
        "adapters: a purged session is still written to",
        "adapters/_sessions.py",
        '                refuse_purged(session, ("live",))\n',
        "",
        (SESSIONS,),
    ),
    Mutant(
        "adapters: every session that was ever used stays open",
        "adapters/_recent.py",
        "        while len(self._values) > self._limit:",
        "        while False:",
        (SESSIONS, RECENT),
    ),
    Mutant(
        "adapters: two parts of an id run into one",
        "adapters/_compositeid.py",
        '.replace("%", "%25").replace("/", "%2F") for part in parts)',
        " for part in parts)",
        (COMPOSITE_ID,),
    ),
    Mutant(
        "adapters: an empty id is taken",
        "adapters/_argument.py",
        "    if not isinstance(value, str) or not value:",
        "    if not isinstance(value, str):",
        (ARGUMENT,),
    ),
    Mutant(
        "adapters: the lock of a session goes with its first user",
        "adapters/_sessions.py",
        "            if users > 1:",
        "            if False:",
        (SESSIONS,),
    ),
    Mutant(
        "adapters: who lost the race to make a session gets an error",
        "adapters/_sessions.py",
        "session = None if drafts else self.find(session_id)",
        "session = None",
        (SESSIONS,),
    ),
]
