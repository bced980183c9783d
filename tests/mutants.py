"""Faults planted into the code, one at a time: the tests have to notice every one of them.

`make mutants` copies `src`, plants one fault in the copy, and runs the tests that ought to see it against the copy.
It fails if a fault goes unnoticed, if its text is no longer in the code, or if those tests fail without any fault.
`ARGS='lock sync'` chooses faults by a part of their name.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPIES = "tests/catalog/test_copies.py"
MAKING = "tests/catalog/test_making.py"
INSTALLING = "tests/hooks/test_install.py"
LAUNCHING = "tests/machine/test_launcher.py"
SERVED = "tests/mcp/test_tools.py"
SERVED_REWIND = "tests/mcp/test_rewind.py"
SERVER = "tests/mcp/test_server.py"
SERVER_INSTALLING = "tests/mcp/test_install.py"
LIMIT = "tests/workspace/test_limit.py"
RELAY = "tests/workspace/test_relay.py"
TOLD = "tests/session/test_told_turns.py"
HOOK = "tests/live/test_hook.py"
CRASHES = "tests/store/test_crash_states.py"
ERRORS = "tests/store/test_io_errors.py"
PROCESSES = "tests/store/test_processes.py"
KILLS = "tests/store/test_kill9.py"
LOCKS = "tests/store/test_locks.py"
DOUBT = "tests/store/test_doubt.py"
FORKS = "tests/session/test_forks.py"
BUILDERS = "tests/session/test_builders.py"
REWINDS = "tests/workspace/test_rewind_files.py"
INTERRUPTED = "tests/workspace/test_interrupted.py"
FAULTS = "tests/workspace/test_faults.py"
ATTACKS = "tests/workspace/test_attacks.py"
RACES = "tests/workspace/test_races.py"
COLLECTING = "tests/workspace/test_collect.py"
GIVEN_UP = "tests/workspace/test_given_up.py"
CONTRACT = "tests/store/test_contract.py"
PG_CONTRACT = "tests/store/test_postgres_contract.py::TestPostgres"
PG_CUTS = "tests/store/test_postgres_cuts.py"
PG_PROCESSES = "tests/store/test_postgres_processes.py"
PG_TROUBLE = "tests/store/test_postgres_trouble.py"
PG_TENANTS = "tests/store/test_postgres_tenants.py"
PG_MIGRATIONS = "tests/store/test_postgres_migrations.py"
PG_HOSTILE = "tests/store/test_postgres_hostile.py"
PG_WATCH = "tests/store/test_postgres_watch.py"
SHOWN = "tests/session/test_live.py"
PG_LISTING = "tests/store/test_postgres_listing.py"
PG_FAILOVER = "tests/store/test_postgres_failover.py"
PRICES = "tests/pricing/test_pricing.py"
GROWTH = "tests/formats/test_growth.py"
KEPT = "tests/exchange/test_kept.py"
KEEPING = "tests/cli/test_keep.py"
ROBOT = "tests/cli/test_robot.py"
SCHEMA = "tests/cli/test_schema.py"
SETUP = "tests/cli/test_setup.py"
SHOWN_ATTACKS = "tests/view/test_attack.py"
WEB_FILES, WEB_GUARD, WEB_PAGES = "tests/web/test_files.py", "tests/web/test_guard.py", "tests/web/test_pages.py"
REDACTED = "tests/view/test_redact.py"
MOVING = "tests/moving/test_moving.py"
BOTH_SIDES = "tests/moving/test_both_sides.py"
MOVING_CUT = "tests/moving/test_power_cut.py"
MOVING_DAMAGE = "tests/moving/test_damaged.py"
MOVING_CONTENT = "tests/moving/test_content.py"
MOVING_AT_ONCE = "tests/moving/test_at_once.py"
STATES = "tests/catalog/test_naming.py"
RUNS = "tests/cli/test_run.py"
CONTENTS = f"{CRASHES}::test_a_checkpoint_that_is_in_the_log_has_all_its_content"
_PATIENCE_S = 300


class Mutant(NamedTuple):
    """One fault: in which file below src/turnlog, what becomes of which text, and which tests must notice."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]


LOGFILE = "store/files/logfile.py"
INTERRUPTS = "tests/session/test_interrupts.py"
WAITS = "tests/store/test_waits.py"
HOMES = "tests/store/test_homes.py"
NEWER = "tests/cli/test_newer.py"
TAIL = "store/files/tail.py"
DISK = "store/files/disk.py"
STORE = "store/files/__init__.py"
LAYOUT = "store/files/layout.py"
TRASH = "store/files/trash.py"
PACKS = "store/files/packwriter.py"
KNOWN = "store/files/known.py"
HANDLE = "store/files/handle.py"
PG_LOG = "store/postgres/log.py"
PG_ROWS = "store/postgres/rows.py"
PG_POOL = "store/postgres/pool.py"
PG_STORE = "store/postgres/__init__.py"
PG_BLOBS = "store/postgres/blobs.py"
PG_SHARING = "store/postgres/sharing.py"
PG_LEASE = "store/postgres/lease.py"
PG_SCHEMA = "store/postgres/schema.py"
PG_PURGE = "store/postgres/purge.py"
PG_TABLES = "store/postgres/migrations/0001.sql"
PG_NEWER_TABLES = "store/postgres/migrations/0002.sql"
PG_NEWEST_TABLES = "store/postgres/migrations/0004.sql"
PG_CONNECTION = "store/postgres/connection.py"
PLAN = "workspace/plan.py"
RESTORE = "workspace/restore.py"
SCAN = "workspace/scan.py"
READ = "workspace/read.py"
TRAVEL = "rewind/travel.py"
INTENT = "rewind/intent.py"
SESSION_FILE = "store/files/sessionfile.py"
ADOPTING = "store/files/adopting.py"
MOVER = "transfer/mover.py"
RENUMBER = "transfer/renumber.py"
MERGE = "transfer/merge.py"

ERASING = "tests/session/test_erasing.py"
ERASED_COPIES = "tests/moving/test_erased.py"

MUTANTS = [
    Mutant(
        "marks: what is said of others' sessions goes with old sessions",
        "thread/removal/expiry.py",
        """    if one.row.id == MARKS or is_kept(""",
        """    if is_kept(""",
        ("tests/cli/test_marks.py",),
    ),
    Mutant(
        "marks: a session that is read again is called what its agent calls it",
        "catalog/read/indexer.py",
        """        self._marked.apply(self._batch)
""",
        """        if self._learns:
            self._marked.apply(self._batch)
""",
        ("tests/cli/test_marks.py",),
    ),
    Mutant(
        "crush: the cost of a subagent is counted twice",
        "formats/crush.py",
        """ and parent is None:""",
        """:""",
        ("tests/formats/test_crush.py",),
    ),
    Mutant(
        "adapter: a text that is edited away is JSON for ever",
        "formats/_shared/item.py",
        """            raise Mismatch(f"{where} is not JSON any more") from None""",
        """            return text""",
        ("tests/adapters/test_items.py",),
    ),
    Mutant(
        "adapter: bytes for URLs come back as plain base64",
        "formats/_shared/item.py",
        """(urlsafe_b64encode if letter == "w" else b64encode)""",
        """b64encode""",
        ("tests/adapters/test_items.py",),
    ),
    Mutant(
        "adapter: lines are exported as they were, whatever was said since",
        "formats/claude_code/mirror.py",
        "    return entry.is_node and not is_mirrored(entry)",
        "    return False",
        ("tests/formats/test_mirror.py",),
    ),
    Mutant(
        "adapter: a line that is handed over happens when it is handed over",
        "formats/claude_code/mirror.py",
        "return entries if at is None else",
        "return entries if True else",
        ("tests/formats/test_mirror.py",),
    ),
    Mutant(
        "catalog: an agent's notes make a second session of what was handed over",
        "catalog/index/settle.py",
        " AND role <> 'note'",
        "",
        ("tests/catalog/test_copies.py",),
    ),
    Mutant(
        "adapter: results beside a text are said twice",
        "formats/claude_code/writing.py",
        "            return fields(message.meta)[LINE] is None  # the line behind it has it as well",
        "            return False",
        ("tests/formats/test_mirror.py",),
    ),
    Mutant(
        "erasing: what a writer gave up stays as it was",
        "store/files/erasing.py",
        "if line.strip() and offset not in counted:",
        "if line.strip() and offset in counted:",
        (f"{ERASING}::test_what_was_left_of_writes_and_repairs_goes_as_well",),
    ),
    Mutant(
        "erasing: the intent goes before the blobs do",
        "thread/removal/erasing.py",
        "        try:\n            freed = forget_unneeded(store, set(plan.blobs))",
        "        eraser.settle(name)\n        try:\n            freed = forget_unneeded(store, set(plan.blobs))",
        (f"{ERASING}::test_killed_anywhere_it_is_finished_or_untouched",),
    ),
    Mutant(
        "erasing: an erased line is another entry to a transfer",
        "transfer/agreement.py",
        "e.unverified or e.void or isinstance(e, _REPEATING)",
        "e.unverified or isinstance(e, _REPEATING)",
        (ERASED_COPIES,),
    ),
    Mutant(
        "erasing: lines on their way bring it back",
        "transfer/erased.py",
        "if item.entry.id in gone and not item.entry.void:",
        "if item.entry.id in gone and item.entry.void:",
        (ERASED_COPIES,),
    ),
    Mutant(
        "erasing: an answer that was erased grows again with the next import",
        "exchange/arrival.py",
        "len(entry.blocks) if not entry.void else _ALL",
        "len(entry.blocks)",
        ("tests/session/test_imports.py",),
    ),
    Mutant(
        "cli: a list goes on with the item that was shown last",
        "cli/frame/itemlist.py",
        "return found[0] + 1 if found",
        "return found[0] if found",
        (ROBOT,),
    ),
    Mutant(
        "cli: a field that there is not is no error",
        "cli/frame/selection.py",
        "if part not in inside:",
        "if part not in inside and not inside:",
        (ROBOT,),
    ),
    Mutant(
        "cli: the schema of a session forgets its state",
        "cli/draw/listing.py",
        '    "state": shape.text("`running`, `waiting`, `idle`, `stopped` or `crashed`"),\n',
        "",
        (SCHEMA,),
    ),
    Mutant(
        "cli: setup takes back what was there before it",
        "cli/setup/part.py",
        "return [name for name in names if name in changed]",
        "return list(names)",
        (SETUP,),
    ),
    # The end of a log.
    Mutant(
        "sessions are announced, and nothing says that they are not read",
        "catalog/upkeep.py",
        "            note(SqliteEngine(db), MAKING, 1)\n",
        "            note(SqliteEngine(db), 'made', 1)\n",
        (MAKING,),
    ),
    Mutant(
        "the index is begun while somebody waits for the first screen",
        "cli/pick/catalog.py",
        "deferred=not is_whole, at_end=True",
        "deferred=not is_whole, at_end=False",
        ("tests/cli/test_quick.py",),
    ),
    Mutant(
        "a glance counts as a reading",
        "catalog/index/cards.py",
        "            ending != UNREAD,\n",
        "            True,\n",
        (MAKING,),
    ),
    Mutant(
        "a torn tail is not sealed off",
        TAIL,
        "        damaged, out = self.end - self.good, list[bytes]()\n",
        "        damaged, out = 0, list[bytes]()\n",
        (CRASHES, KILLS),
    ),
    Mutant(
        "a complete tail is sealed, not adopted",
        LOGFILE,
        "        if not is_adoptable(self.handle.read, size):\n",
        "        if True:\n",
        (CRASHES,),
    ),
    Mutant(
        "an unfinished batch counts",
        "log/assemble.py",
        "    if following is None:\n        return True\n",
        "    if following is None:\n        return False\n",
        (CRASHES,),
    ),
    Mutant(
        "what says `sealed` seals nothing",
        "log/assemble.py",
        "    return following[1].sealed > 0 and",
        "    return False and",
        (CRASHES,),
    ),
    Mutant(
        "the line that seals is not synced before others",
        LOGFILE,
        "            self._sync_or_give_up()\n\n    def _be_sure_of",
        "            pass\n\n    def _be_sure_of",
        (CRASHES,),
    ),
    Mutant(
        "a line follows a batch that may be lost in part",
        LOGFILE,
        "        if tail.ends_in_batch and self._durable",
        "        if False and self._durable",
        (CRASHES,),
    ),
    Mutant(
        "numbers of damaged entries are given out again",
        TAIL,
        "            self.floor += self.damaged // _SHORTEST_LINE + 1\n",
        "            pass\n",
        (DOUBT,),
    ),
    Mutant(
        "numbers of hidden entries are given out again",
        TAIL,
        "        self.floor = max(self.floor, hidden)\n",
        "",
        (DOUBT, CRASHES),
    ),
    # Syncs.
    Mutant(
        "an append is not synced",
        LOGFILE,
        "                    self._disk.sync(fd)\n                except OSError:\n",
        "                    pass\n                except OSError:\n",
        (CRASHES,),
    ),
    Mutant(
        "an error of a sync is ignored",
        LOGFILE,
        "                except OSError:\n"
        "                    with self.mutex:\n"
        "                        if fd == handle.fd:\n"
        "                            self._give_up_descriptor()\n"
        "                    raise\n",
        "                except OSError:\n                    pass\n",
        (ERRORS,),
    ),
    Mutant(
        "a descriptor is used again after a failed sync",
        LOGFILE,
        "        self.tail = None\n        self.handle.leave()\n        self._try_to_cut()\n",
        "        self.tail = None\n        self._try_to_cut()\n",
        (ERRORS,),
    ),
    Mutant(
        "a retry is answered from the page cache",
        KNOWN,
        "        self.doubted.update(seqs)\n",
        "        return\n",
        (ERRORS,),
    ),
    Mutant(
        "numbers of entries that failed to sync are given out again",
        LOGFILE,
        ", self._unsynced.last_failed)\n",
        ")\n",
        (ERRORS,),
    ),
    Mutant(
        "the lock is kept when the sync of a seal fails",
        HANDLE,
        "            self._disk.unlock(self.fd)\n            self.old.append(self.fd)\n",
        "            self.old.append(self.fd)\n",
        (f"{ERRORS}::test_a_failed_sync_of_a_line_that_seals_does_not_keep_the_lock",),
    ),
    Mutant(
        "a failed write is not cut back",
        LOGFILE,
        "            self._disk.ftruncate(self.handle.fd, start)\n            self._unsynced.waiting.pop()\n",
        "            pass\n",
        (ERRORS,),
    ),
    Mutant(
        "a repeated entry is said twice",
        "thread/history.py",
        "            if entry.again and self.is_repeat(entry):\n",
        "            if False:\n",
        (ERRORS,),
    ),
    Mutant(
        "an id counts twice if another object wrote it",
        KNOWN,
        "        self._forgotten = _counter(new_id())\n",
        "        pass\n",
        (ERRORS,),
    ),
    # Names.
    Mutant(
        "the name of a new session is not synced",
        STORE,
        "            self._disk.sync_folder(os.path.join(self._layout.folder, place))\n",
        "",
        (CRASHES,),
    ),
    Mutant(
        "the names of new folders are not synced",
        LAYOUT,
        "            return\n        self.disk.sync_folder(os.path.dirname(path))\n",
        "            return\n",
        (CRASHES,),
    ),
    Mutant(
        "folders that a dead process made are taken for synced",
        LAYOUT,
        "            self._sync_above()\n",
        "            pass\n",
        (CRASHES,),
    ),
    Mutant(
        "a session that a dead process made is taken for synced",
        LOGFILE,
        "            if self._durable:\n                self._disk.sync_folder(folder)\n",
        "",
        (CRASHES,),
    ),
    Mutant(
        "a session that is deleted is not synced into the trash",
        TRASH,
        "                self._disk.sync_folder(os.path.dirname(new))\n",
        "",
        (CRASHES,),
    ),
    Mutant(
        "a purge does not keep what forks need",
        TRASH,
        "            if needed:\n                from",
        "            if False:\n                from",
        (CRASHES, FORKS),
    ),
    Mutant(
        "a purge does not ask whether it can read the forks",
        TRASH,
        "                if found.start is None:\n                    return name, _UNKNOWN\n",
        "                if found.start is None:\n                    continue\n",
        (PROCESSES,),
    ),
    Mutant(
        "a fork finds whatever is called like what it builds on",
        STORE,
        "        begins = {path: first if first is None else first_id(self._disk, path) for path in there}\n",
        "        begins = dict.fromkeys(there, first)\n",
        (CONTRACT,),
    ),
    Mutant(
        "restoring replaces what is there by now",
        TRASH,
        "                    self._disk.link(old, new)\n",
        "                    self._disk.rename(old, new)\n                    return\n",
        (CONTRACT,),
    ),
    Mutant(
        "a fork does not look whether its parent was purged",
        STORE,
        "found.last.seq < parent.seq:\n",
        "False:\n",
        (PROCESSES,),
    ),
    Mutant(
        "a fork builds on what is not synced",
        "thread/creator.py",
        "            history.log.sync(at)",
        "            pass",
        (f"{CRASHES}::test_a_fork_never_inherits_what_came_after_it",),
    ),
    Mutant(
        "a session is moved while others look for what is needed",
        TRASH,
        "            with self._blobs.keeping(), self._disk.hold(old) as held:",
        "            with self._disk.hold(old) as held:",
        (PROCESSES,),
    ),
    # Blobs.
    Mutant(
        "a pack is not synced before it gets its name",
        PACKS,
        "        self._flush()\n        self._disk.sync(self._fd)\n",
        "        self._flush()\n",
        (CRASHES,),
    ),
    Mutant(
        "the name of a pack is not synced",
        "store/files/packs.py",
        "        known = set(self._known)\n        self.disk.sync_folder(self.folder)\n",
        "        known = set(self._known)\n",
        (CRASHES,),
    ),
    Mutant(
        "a pack that a dead process wrote is taken for synced",
        PACKS,
        "                self._packs.make_sure()  # something may have been left out because another one has it\n",
        "                pass\n",
        (CRASHES,),
    ),
    Mutant(
        "collecting removes packs before what is needed of them is in its new place",
        "store/files/collect.py",
        "        target, _ = _write_together(packs, list(wanted), wanted)\n",
        "        for name in wanted:\n            disk.unlink(os.path.join(folder, name))\n"
        "        target, _ = _write_together(packs, list(wanted), wanted)\n",
        (CRASHES, PROCESSES),
    ),
    Mutant(
        "an entry is appended without its blobs",
        "thread/appender.py",
        "        if blobs:\n            derived.put(self._store, blobs)\n\n",
        "\n",
        (CRASHES,),
    ),
    # Files.
    Mutant(
        "what somebody else changed is no conflict",
        PLAN,
        "            broken = _conflict(path, target, now, mine, get)\n",
        '            broken = ""\n',
        (REWINDS,),
    ),
    Mutant(
        "a turn that was cut short owns everything since",
        "rewind/span.py",
        "lives(who) is True",
        "lives(who) is not None",
        ("tests/workspace/test_cut_short.py",),
    ),
    Mutant(
        "a turn that was cut short is sure until the next checkpoint",
        "rewind/span.py",
        "            begun.sure, begun.after = self._last, None\n",
        "            begun.sure, begun.after = self._last, None\n        if isinstance(entry, Checkpoint):\n"
        "            for other in self._begun.values():\n                other.sure, other.after = entry, None\n",
        ("tests/workspace/test_cut_short.py",),
    ),
    Mutant(
        "only sessions of the very same folder are asked",
        "rewind/others.py",
        "        if any(folder_path.startswith(other) or other.startswith(folder_path) for other in places):\n",
        "        if folder_path in places:\n",
        ("tests/workspace/test_cut_short.py",),
    ),
    Mutant(
        "a killed turn of another session counts as over at its last word",
        "rewind/others.py",
        "row.updated_at < since.at and theirs.state.turn is None",
        "row.updated_at < since.at",
        ("tests/workspace/test_cut_short.py",),
    ),
    Mutant(
        "no checkpoint of now before a rewind",
        TRAVEL,
        """            before = self._appender.append([draft])[0]\n""",
        "            before = self._files.at_or_before(self._history.state.seq)\n",
        (REWINDS, INTERRUPTED),
    ),
    Mutant(
        "a rewind is made by another plan than the one that was shown",
        TRAVEL,
        "                _refuse_other(make(draft), confirmed)\n",
        "                make(draft)\n",
        (REWINDS,),
    ),
    Mutant(
        "a real path is looked up and then opened",
        RESTORE,
        """        fd = os.dup(self._root)\n        above = b""\n""",
        """        root = os.fsencode(os.readlink(f"/proc/self/fd/{self._root}"))\n"""
        """        place = os.path.realpath(os.path.join(root, path))\n"""
        """        if place != root and not place.startswith(root + b"/"):\n"""
        """            raise OSError(errno.ELOOP, "outside")\n"""
        """        if make:\n            os.makedirs(place, exist_ok=True)\n"""
        """        fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)\n"""
        """        yield fd\n        os.close(fd)\n        return\n"""
        """        above = b""\n""",
        (ATTACKS,),
    ),
    Mutant(
        "a link on the way is followed",
        RESTORE,
        "below = os.open(name, _FOLDER_FLAGS, dir_fd=fd)\n",
        "below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)\n",
        (ATTACKS,),
    ),
    Mutant(
        "a checkpoint looks into what a link points to",
        READ,
        "FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC\n",
        "FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC\n",
        (ATTACKS,),
    ),
    Mutant(
        "a path in a log is believed",
        RESTORE,
        """    if any(name in (b"", b".", b"..") or b"\\0" in name for name in names):\n""",
        "    if False:\n",
        (ATTACKS,),
    ),
    Mutant(
        "a folder in a log is believed",
        INTENT,
        "    if step.root not in covered:\n        return False\n    if not step.raw:  # the folder itself\n"
        "        return True\n    tracked, is_partial = covered[step.root]\n",
        "    tracked, is_partial = covered.get(step.root, (frozenset(), False))\n",
        (ATTACKS,),
    ),
    Mutant(
        "the mode of a file changes under all its names",
        RESTORE,
        "            if is_same and seen is not None and seen[5] == 1:\n",
        "            if is_same:\n",
        (ATTACKS,),
    ),
    Mutant(
        "unknown is treated as absent",
        "workspace/found.py",
        "        self.tree[os.fsencode(name)] = TreeNode(UNKNOWN, size=size, reason=reason)\n",
        "",
        (REWINDS, RACES),
    ),
    Mutant(
        "what is too young to trust is trusted",
        SCAN,
        "        return max(status.st_mtime_ns, status.st_ctime_ns) < self._young\n",
        "        return True\n",
        (f"{RACES}::test_what_was_only_just_written_is_not_taken_for_known",),
    ),
    Mutant(
        "a file that changes while it is read is not read again",
        READ,
        "            if after == signature(before) and size == before.st_size:\n",
        "            if True:\n",
        (RACES,),
    ),
    Mutant(
        "what the user saves while a file is put back is overwritten",
        RESTORE,
        "        if _look(fd, name) != seen:  # somebody saved it while we wrote ours\n            return _CHANGED\n",
        "",
        (RACES,),
    ),
    Mutant(
        "the files of a dead process are not swept up",
        INTENT,
        "        if again:\n            restorer.sweep(steps)\n",
        "",
        (INTERRUPTED,),
    ),
    Mutant(
        "half of a file is taken into a checkpoint",
        SCAN,
        "elif HALF_DONE.fullmatch(name):",
        "elif False:",
        (INTERRUPTED,),
    ),
    Mutant(
        "a rewind is not written down before it is begun",
        TRAVEL,
        "                return self._appender.append([draft], alone=True)[0]\n",
        "                return draft\n",
        (INTERRUPTED,),
    ),
    Mutant(
        "a rewind that is running is taken for interrupted",
        INTENT,
        '    return int(who.get("pid") or 0) if is_alive(who) else 0\n',
        "    return 0\n",
        (f"{INTERRUPTED}::test_nobody_touches_files_while_another_process_is_in_the_middle",),
    ),
    Mutant(
        "a rewind of another machine is finished unasked",
        TRAVEL,
        " or (is_elsewhere(intent) and not asked):\n",
        ":\n",
        (INTERRUPTED,),
    ),
    Mutant(
        "a rewind that is finished when asked again counts twice",
        TRAVEL,
        "        if finished is not None and not force and _is_same(finished.entry, head):\n",
        "        if False:\n",
        (INTERRUPTED,),
    ),
    Mutant(
        "the next turn begins on files that are half back",
        "session/session.py",
        """            if when == "begin" and self._state.intent:\n                self._travel.settle()\n""",
        "",
        (INTERRUPTED,),
    ),
    Mutant(
        "a full disk is one more file that stays",
        RESTORE,
        "            if error.errno in FULL:\n                raise\n",
        "",
        (INTERRUPTED,),
    ),
    Mutant(
        "a failed sync of a folder is ignored",
        RESTORE,
        "                    failed = error\n",
        "                    continue\n",
        (INTERRUPTED,),
    ),
    Mutant(
        "half of a file is left where writing it failed",
        RESTORE,
        "            except BaseException:\n"
        "                self._discard(fd, parent, temporary)\n"
        "                raise\n",
        "            except ZeroDivisionError:\n                raise\n",
        (FAULTS,),
    ),
    Mutant(
        "a folder that could not be made is made by what belongs in it",
        RESTORE,
        "                if make and inner not in self._missing:\n",
        "                if make:\n",
        (FAULTS,),
    ),
    Mutant(
        "all that changed during a rewind is taken for its doing",
        "rewind/planner.py",
        """        span = Span(before, after, f"{mark.why} {mark.seq}", paths)\n""",
        """        span = Span(before, after, f"{mark.why} {mark.seq}")\n""",
        (RACES,),
    ),
    Mutant(
        "what a rewind had to leave alone is taken for its doing",
        INTENT,
        ".difference(head.kept)\n",
        "\n",
        (INTERRUPTED,),
    ),
    # Which session is meant, and what it took.
    Mutant(
        "files are those of an import that has none",
        "reader/folder.py",
        "if _has_checkpoint(home, id)",
        "if id",
        ("tests/cli/test_here.py",),
    ),
    Mutant(
        "what opencode clears later in its database is not noticed",
        "formats/opencode/shelf.py",
        'touched.add(_touched(row) if touched else "")',
        'touched.add("")',
        ("tests/formats/test_opencode_growth.py",),
    ),
    Mutant(
        "a log of events that opencode began anew is taken for the one that was read",
        "formats/opencode/shelf.py",
        'if row["seq"] != seq or (not touched and row["id"] != place.event):',
        'if row["seq"] != seq:',
        ("tests/formats/test_opencode_growth.py",),
    ),
    Mutant(
        "what somebody types while he stops an agent goes back with its turn",
        "live/event.py",
        "if self._payload.is_interrupted:",
        "if False:",
        ("tests/live/test_hook.py",),
    ),
    Mutant(
        "what a fork copied is taken for what was asked in its first turn",
        "exchange/claim.py",
        "if not free or (at is not None and self._since is not None and at < self._since):",
        "if not free:",
        ("tests/exchange/test_claim.py",),
    ),
    Mutant(
        "what opencode has written to its WAL is not noticed",
        "exchange/carry.py",
        'f"{source.path}-wal"]',
        "]",
        ("tests/formats/test_opencode_growth.py",),
    ),
    Mutant(
        "what Copilot CLI spent before the place where reading goes on is booked again",
        "formats/copilot_cli.py",
        "self._counted = dict(state.counted)",
        "self._counted: dict[str, Usage] = {}",
        (GROWTH,),
    ),
    Mutant(
        "a late result of Copilot CLI loses the name of its tool",
        "formats/copilot_cli.py",
        'if self._start is not None and str(data.get("toolCallId")) not in self._names:',
        "if False:",
        (GROWTH,),
    ),
    Mutant(
        "what goes on far behind in a file of Qwen Code is hung on the newest record",
        "formats/qwen_code.py",
        "if self._start is not None and parent not in self._places:",
        "if self._start is not None and False:",
        (GROWTH,),
    ),
    Mutant(
        "what is told ahead of an answer is spent twice",
        "formats/kimi/code.py",
        "        if self._step is None:\n            yield from self._uncarried()\n",
        "        yield from self._uncarried()\n",
        ("tests/formats/test_small_agents.py",),
    ),
    Mutant(
        "what was deleted and is kept cannot be imported",
        "exchange/source.py",
        "    with kept_or_there(creator.made.location, source) as there:\n",
        "    with kept_or_there(os.devnull, source) as there:\n",
        (KEEPING,),
    ),
    # Copies for other agents.
    Mutant(
        "what is handed over costs its money again",
        "exchange/handover.py",
        "    yield written_for(transcript, agent, version, is_free=True)\n",
        "    yield written_for(transcript, agent, version)\n",
        (COPIES,),
    ),
    Mutant(
        "a copy stays hidden although its original is gone",
        "catalog/index/copies.py",
        "        is_repeat = there is not None and not there.is_deleted\n",
        "        is_repeat = True\n",
        (COPIES,),
    ),
    # Checkpoints and the blobs in them.
    Mutant(
        "a pack gets its name before it is synced",
        PACKS,
        "        self._disk.sync(self._fd)\n        self.name = pack_name(list(self._rows))\n"
        "        self._disk.rename(self._temporary, os.path.join(self._packs.folder, self.name))\n",
        "        self.name = pack_name(list(self._rows))\n"
        "        self._disk.rename(self._temporary, os.path.join(self._packs.folder, self.name))\n"
        "        self._disk.sync(self._fd)\n",
        (CRASHES,),
    ),
    Mutant(
        "a blob that is put back is not verified",
        "store/files/packs.py",
        "        if hashed.digest() != key:\n",
        "        if False:\n",
        (COLLECTING,),
    ),
    Mutant(
        "what somebody collected is taken for known",
        "rewind/snapshot.py",
        "            is_all_there = packs.issuperset(seen.packs)\n",
        "            is_all_there = True\n",
        (COLLECTING,),
    ),
    Mutant(
        "what a scan remembers is believed although it is damaged",
        "workspace/cache.py",
        """    if crc32(data[4:]).to_bytes(4, "little") != data[:4]:\n""",
        "    if False:\n",
        (COLLECTING,),
    ),
    Mutant(
        "a blob is only looked for where it was",
        "store/files/packs.py",
        "                self._learn_all()  # somebody collected: what is needed is in another pack by now\n",
        "                pass\n",
        (COLLECTING,),
    ),
    Mutant(
        "a blob that is gone is taken to be there",
        "store/files/packs.py",
        "            if place is not None and not self._exists(place[0]):\n",
        "            if False:\n",
        (COLLECTING,),
    ),
    Mutant(
        "collecting does not wait for those who write",
        "store/files/blobs.py",
        "held = self._hold(shared=False)\n",
        "held = self._hold(shared=True)\n",
        (COLLECTING, RACES),
    ),
    Mutant(
        "collecting removes a pack although a blob in it is damaged",
        "store/files/collect.py",
        "                kept.add(name)\n",
        "                continue\n",
        (COLLECTING,),
    ),
    Mutant(
        "collecting writes before it makes room",
        "store/files/collect.py",
        "        if not live:\n",
        "        if not live and not contents:\n",
        (COLLECTING,),
    ),
    Mutant(
        "collecting does not ask what was appended while it looked",
        "thread/garbage.py",
        "        self._needed = all_needed(self._store, found, self._needed)\n        # Damage",
        "        # Damage",
        (COLLECTING,),
    ),
    Mutant(
        "collecting reads everything while it keeps everybody out",
        "thread/garbage.py",
        "        found = needs(self._store, self._known)\n        self._needed",
        "        found = needs(self._store)\n        self._needed",
        (COLLECTING,),
    ),
    Mutant(
        "collecting writes packs while it keeps everybody out",
        "thread/garbage.py",
        "self._store.collect(self._without_rest, expected=self._needed)\n",
        "self._store.collect(self._without_rest)\n",
        (COLLECTING,),
    ),
    Mutant(
        "collecting gives up what an interrupted rewind needs",
        "thread/garbage.py",
        "        found.busy.add(first)\n",
        "        pass\n",
        (COLLECTING,),
    ),
    Mutant(
        "a session gives up the checkpoints of another",
        "thread/garbage.py",
        "if kept.name in dropped])\n",
        "if kept.id in {name for _, name in dropped}])\n",
        (COLLECTING,),
    ),
    Mutant(
        "a tree goes with its content, and not before",
        "thread/garbage.py",
        "        if gone or self._drop is not None:\n"
        "            self._store.collect(self._without_roots, expected=_AllBut(gone), strictly=True)\n",
        "        if gone or self._drop is not None:\n"
        "            self._store.collect(lambda: [self._without_roots(), _AllBut(())][1], expected=_AllBut(()))\n"
        "            self._without_rest = lambda: all_needed(self._store, needs(self._store, self._known))\n",
        (GIVEN_UP,),
    ),
    Mutant(
        "only the session that holds a checkpoint knows that it was given up",
        "thread/content.py",
        "    lacking |= derived.lacking(store, trees - lacking) if trees - lacking else set()\n",
        "",
        (GIVEN_UP,),
    ),
    Mutant(
        "leftovers of dead writers stay for ever",
        LAYOUT,
        "                self.disk.unlink(path)\n\n",
        "                pass\n\n",
        (INTERRUPTED,),
    ),
    # Interrupts.
    Mutant(
        "after an interrupt the state is taken to be whole",
        "thread/appender.py",
        "what we know of it may differ now.\n            self._is_stale = True\n",
        "what we know of it may differ now.\n",
        (INTERRUPTS,),
    ),
    Mutant(
        "what an interrupted append left is a conflict with oneself",
        "thread/appender.py",
        " and item.id not in self._tried:\n",
        ":\n",
        (INTERRUPTS,),
    ),
    Mutant(
        "the lock of a log stays held after an interrupt",
        LOGFILE,
        "        except BaseException:\n            self.tail = None\n            handle.leave()\n            raise\n",
        "        except BaseException:\n            self.tail = None\n            raise\n",
        (INTERRUPTS,),
    ),
    Mutant(
        "a file that was being made is left over after an interrupt",
        STORE,
        "            except BaseException as error:\n                self._disk.discard(temporary)\n",
        "            except BaseException as error:\n",
        (INTERRUPTS,),
    ),
    Mutant(
        "a forked worker holds the locks of its parent",
        DISK,
        '        """See `HasFiles`. The lock stays with the parent."""\n        self.close()\n',
        '        """See `HasFiles`. The lock stays with the parent."""\n',
        (WAITS,),
    ),
    Mutant(
        "whoever waited long enough goes on without the lock",
        DISK,
        "                    raise waited_too_long(fd) from None\n",
        "                    return\n",
        (WAITS,),
    ),
    # Other processes and threads.
    Mutant(
        "nobody locks",
        DISK,
        '''        """The writer's lock: the kernel frees it when its holder dies. Waits, but not for ever."""\n''',
        "        return\n",
        (PROCESSES, LOCKS),
    ),
    Mutant(
        "nobody looks what others wrote",
        LOGFILE,
        "        elif size != tail.end:\n",
        "        elif False:\n",
        (PROCESSES,),
    ),
    Mutant(
        "a node of another process is no conflict",
        SESSION_FILE,
        "            self._refuse_conflict(after, alone)\n",
        "            pass\n",
        (PROCESSES,),
    ),
    Mutant(
        "a file that was replaced is not noticed",
        LOGFILE,
        "        if (status.st_dev, status.st_ino) != handle.identity:\n",
        "        if False:\n",
        (LOCKS,),
    ),
    Mutant(
        "a forked process keeps the locks of its parent's threads",
        "thread/history.py",
        "        history.mutex = threading.RLock()\n",
        "        pass\n",
        (PROCESSES,),
    ),
    Mutant(
        "a symbolic link is followed",
        DISK,
        "        flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK\n",
        "        flags |= os.O_CLOEXEC | os.O_NONBLOCK\n",
        (LOCKS,),
    ),
    Mutant(
        "a network file system is not noticed",
        LOGFILE,
        "            self._disk.refuse_remote(folder)\n",
        "",
        (LOCKS,),
    ),
    # What is folded.
    Mutant(
        "a fold is believed although somebody edited it",
        "log/fold/__init__.py",
        "    if entry.unverified or entry.state is None or",
        "    if entry.state is None or",
        (DOUBT,),
    ),
    Mutant(
        "a fold is believed although it was counted by other rules",
        "log/fold/__init__.py",
        " or entry.rules != RULES:\n",
        ":\n",
        (HOMES,),
    ),
    Mutant(
        "the numbers of a home fall",
        LAYOUT,
        "            self._check()  # a newer",
        "            pass  # a newer",
        (NEWER,),
    ),
    Mutant(
        "a pack of a newer version is taken for a damaged one",
        "store/files/packs.py",
        "            if footer[-1] in NEWER:\n",
        "            if False:\n",
        (NEWER,),
    ),
    Mutant(
        "a fold is believed whatever it claims to know",
        "log/fold/__init__.py",
        "    return state if state.seq == entry.upto else None\n",
        "    return state\n",
        (DOUBT,),
    ),
    Mutant(
        "a fold is believed to know all before it",
        "thread/history.py",
        "            if state is not None and item.seq <= state.seq:\n",
        "            if state is not None:\n",
        (DOUBT,),
    ),
    Mutant(
        "what a fork inherits counts as its own",
        "log/fold/__init__.py",
        "    child.models, child.requests, child.peak, child.counts = {}, [], 0, Counts()\n",
        "    child.requests = []\n",
        (FORKS,),
    ),
    Mutant(
        "keep: what never reached the disk is taken for kept",
        "exchange/kept.py",
        "                frames.pop()\n",
        "                pass\n",
        (KEPT,),
    ),
    Mutant(
        "keep: a shorter file takes the place of a longer one",
        "exchange/kept.py",
        "            if shrank:\n",
        "            if False:\n",
        (KEPT,),
    ),
    Mutant(
        "keep: what a session spent is only in the cache",
        "catalog/read/gone.py",
        "        self._ledger.put(db, sessions)\n",
        "        pass\n",
        (KEEPING,),
    ),
    Mutant(
        "price: an unknown model costs nothing",
        "pricing/__init__.py",
        "            unpriced = _sum(unpriced, {model: usage})\n",
        "",
        (PRICES,),
    ),
    Mutant(
        "price: tiers go by what was not cached",
        "pricing/__init__.py",
        "size = sum(counts[:4])",
        "size = sum(counts[:2])",
        (PRICES,),
    ),
    Mutant(
        "price: a request is paid for every entry it became",
        "pricing/__init__.py",
        "            paid.add(entry.request)\n",
        "",
        (PRICES,),
    ),
    Mutant(
        "price: a fork pays for its parent",
        "thread/bill.py",
        "cost_of(_entries(history, limit, None))",
        "cost_of(_entries(history, 0, None))",
        (PRICES,),
    ),
    Mutant(
        "a policy clears what is to be kept",
        "compaction.py",
        "        old = own[: len(own) - kept]\n",
        "        old = own\n",
        ("tests/session/test_policy.py",),
    ),
    Mutant(
        "what fits into so many tokens begins with a result",
        "thread/compaction.py",
        "            if _may_begin(own, place):\n",
        "            if True:\n",
        ("tests/session/test_kept.py",),
    ),
    Mutant(
        "a context asks the store while the loop makes a request of it",
        "aio/session.py",
        "                    made.load()  # here, and not on the loop when a request is made of it\n",
        "                    pass\n",
        ("tests/session/test_aio.py",),
    ),
    Mutant(
        "summary: what is kept is summarised as well",
        "thread/compaction.py",
        "*kept], before=first)",
        "*kept], before=0)",
        ("tests/seeds/test_claw_features.py",),
    ),
    Mutant(
        "summary: an earlier one is quoted",
        "thread/summary.py",
        "        if summary is not None:",
        "        if summary is not None and not summary.requests:",
        ("tests/session/test_summary.py",),
    ),
    # ── PostgreSQL ────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "a writer that appended a mark has seen what came before it",
        PG_ROWS,
        "last_seq = $7 and last_fence <= $8",
        "last_seq = $7 and $8 is not null",
        (PG_CONTRACT,),
    ),
    Mutant(
        "a node of another machine is no conflict",
        PG_LOG,
        "        if last_fence > limit or (alone and last_seq > after):\n",
        "        if alone and last_seq > after:\n",
        (PG_CONTRACT,),
    ),
    Mutant(
        "two who take the newest message back take the same one",
        "session/session.py",
        "            if after is not None:\n                self._appender.refuse_other_head(seq_of(after))\n",
        "",
        (BUILDERS,),
    ),
    Mutant(
        "who is introduced has seen what others wrote before",
        "thread/appender.py",
        "if alone and (self._has_news or state.seq > seq + is_new):",
        "if alone and self._has_news:",
        (BUILDERS,),
    ),
    Mutant(
        "a short way back brings back the facts of now",
        "thread/target.py",
        "        elif isinstance(entry, Head) and entry.asof < asof:\n            return None",
        "        elif isinstance(entry, Head) and entry.asof < 0:\n            return None",
        (BUILDERS,),
    ),
    Mutant(
        "what we sent before the line was cut is taken for somebody else's",
        PG_LOG,
        "once and lines and list(lines.values()) not in sent",
        "once and lines",
        (PG_CUTS,),
    ),
    Mutant(
        "an append is sent again without a look whether it is there",
        PG_LOG,
        "known = self._known(connection, drafts, once, sent)",
        "known: dict[str, AnyEntry] = {}",
        (PG_CUTS,),
    ),
    Mutant(
        "a session made before the line was cut is taken for somebody else's",
        PG_STORE,
        """            if again and found is not None and found[4] == values["made"]:\n""",
        "            if not values:\n",
        (PG_CUTS,),
    ),
    Mutant(
        "a deletion whose answer was lost is an error",
        PG_STORE,
        "            return again and connection.execute(_LIVE, (self._tenant, target, key)).fetchone() is not None",
        "            return False",
        (PG_CUTS,),
    ),
    Mutant(
        "a server that does not wait for its disk is not overruled",
        "store/postgres/connection.py",
        "when current_setting('synchronous_commit') = 'off' \"\n",
        'when false "\n',
        (PG_TROUBLE,),
    ),
    Mutant(
        "tables are made without a lock",
        PG_SCHEMA,
        "                connection.execute(_LOCK)\n",
        "",
        (PG_MIGRATIONS,),
    ),
    Mutant(
        "a fork of a parent that is gone",
        "store/postgres/creating.py",
        " and (%(parent)b::bytea is null or exists (select from parent))\n",
        "\n",
        (PG_CONTRACT,),
    ),
    Mutant(
        "a session is made in a tenant that was dropped",
        "store/postgres/creating.py",
        "    where exists (select from owner) and",
        "    where",
        ("tests/store/test_tenants.py",),
    ),
    Mutant(
        "whose it is stays on the connection",
        "store/postgres/connection.py",
        "_WHOSE = \"set_config('turnlog.tenant', $1, true)\"",
        "_WHOSE = \"set_config('turnlog.tenant', $1, false)\"",
        ("tests/store/test_postgres_pooler.py",),
    ),
    Mutant(
        "a connection stays with the tenant that had it before",
        PG_POOL,
        "        found = self.connections.take()\n        found.tenant = self.tenant\n",
        "        found = self.connections.take()\n",
        ("tests/store/test_tenants.py",),
    ),
    Mutant(
        "what was kept aside stays for ever",
        PG_PURGE,
        "        num, root, _, above, _, _ = base\n",
        "        return 1\n",
        (PG_CONTRACT,),
    ),
    Mutant(
        "a lock that was lost does not matter",
        PG_SHARING,
        "                if not self._drop(lease) and shared:\n",
        "                if not self._drop(lease) and not shared:\n",
        (PG_TROUBLE,),
    ),
    Mutant(
        "a collection does not wait for other processes",
        PG_LEASE,
        "            if others and others[0][2]:\n",
        "            if others and not others[0][2]:\n",
        (PG_TROUBLE,),
    ),
    Mutant(
        "content in a database is not looked at",
        PG_BLOBS,
        "        if whole.digest() != digest_key(digest):\n",
        "        if length != size:\n",
        (PG_TROUBLE,),
    ),
    Mutant(
        "what refers to blobs is written by who no longer keeps them",
        PG_ROWS,
        '_IF_HELD = " and exists (select from held)"',
        '_IF_HELD = ""',
        (PG_TROUBLE,),
    ),
    Mutant(
        "who collects does not look whether it still may",
        PG_SHARING,
        "        if not self._lease.renew(connection):\n",
        "        if False:\n",
        (PG_TROUBLE,),
    ),
    Mutant(
        "a function of the owner looks names up where others put theirs",
        PG_NEWEST_TABLES,
        "alter function turnlog.tenant_num() set search_path = pg_catalog, pg_temp;",
        "",
        (PG_HOSTILE,),
    ),
    Mutant(
        "a condition of somebody else's is asked first",
        PG_NEWEST_TABLES,
        "alter view turnlog.own_texts set (security_barrier);",
        "",
        (PG_HOSTILE,),
    ),
    Mutant(
        "a tenant reads the entries of others",
        PG_TABLES,
        "create policy own on turnlog.entry using (tenant = (select turnlog.tenant_num()));",
        "create policy own on turnlog.entry using (true);",
        (PG_TENANTS,),
    ),
    Mutant(
        "a role that is bound to a tenant chooses another",
        PG_NEWER_TABLES,
        "    bound := coalesce(bound, pg_catalog.current_setting('turnlog.tenant', true), '');",
        "    bound := coalesce(pg_catalog.current_setting('turnlog.tenant', true), bound, '');",
        (PG_TENANTS,),
    ),
    Mutant(
        "blobs of tenants are one",
        PG_BLOBS,
        """_GET = "select num, size from turnlog.blob where tenant = %s and digest = %b\"""",
        """_GET = "select num, size from turnlog.blob where tenant >= %s - 999 and digest = %b\"""",
        (PG_TENANTS,),
    ),
    Mutant(
        "a compaction hides what came after the context it sums up",
        "thread/compaction.py",
        "    first = cut_for_keep(kept, keep.count(kept), seen=seen)\n",
        "    first = cut_for_keep(kept, keep.count(kept), seen=None)\n",
        ("tests/session/test_random_programs.py",),
    ),
    Mutant(
        "a slow listener loses what its pipe does not take",
        "store/broadcast.py",
        "                yield _encode(Delta(self.id, piece, kind, block, at))\n"
        "                told[block], is_silent = at + len(piece), False\n",
        "                told[block], is_silent = at + len(piece), False\n"
        "                yield _encode(Delta(self.id, piece, kind, block, at))\n",
        (SHOWN,),
    ),
    Mutant(
        "nobody is told that a log has grown",
        PG_ROWS,
        '        self._is_watched = done.get_value(0, 0) == b"\\0"\n',
        "",
        (PG_WATCH,),
    ),
    Mutant(
        "an append leaves a session where it was among the newest",
        PG_ROWS,
        ", recent = $3 / 60000",
        "",
        (PG_LISTING,),
    ),
    Mutant(
        "an append in a new table goes through all sessions of a tenant",
        "store/postgres/migrations/0005.sql",
        "alter table turnlog.session drop constraint session_pkey, add primary key (tenant, num);\n",
        "",
        (PG_LISTING,),
    ),
    Mutant(
        "a commit that no standby has is believed",
        PG_POOL,
        "                connection.confirm()\n",
        "",
        (PG_FAILOVER,),
    ),
    Mutant(
        "a statement is done before its commit is",
        PG_CONNECTION,
        "            results.append(result)\n",
        "            return [result]\n",
        (PG_CUTS,),
    ),
    Mutant(
        "the newest file has the newest entry",
        "store/files/newest.py",
        "not is_wrong and known[-1].order.at_ms / 1000 > changed[-1][0]",
        "not is_wrong",
        ("tests/store/test_listing.py",),
    ),
    Mutant(
        "lines are taken over wherever a log ends",
        ADOPTING,
        "    if tail.last != after:\n",
        "    if False:\n",
        ("tests/store/test_contract.py::TestFiles",),
    ),
    Mutant(
        "many batches of a copy are one write",
        ADOPTING,
        "        if end < len(entries):\n",
        "        if False:\n",
        (MOVING_CUT,),
    ),
    Mutant(
        "what an unfinished batch left stays before lines of a copy",
        ADOPTING,
        " if remains else tail\n",
        " if False else tail\n",
        (MOVING_DAMAGE, MOVING_CUT),
    ),
    Mutant(
        "blobs are sent while somebody may collect them",
        MOVER,
        "            with held(source), target.keeping():\n",
        "            with held(source):\n",
        (MOVING,),
    ),
    Mutant(
        "copies that end alike are taken for the same",
        "transfer/agreement.py",
        "        if after == 0 or not all(item.entry.merges for item in here):\n",
        "        if True:\n",
        (BOTH_SIDES,),
    ),
    Mutant(
        "sessions that end alike are taken for the same",
        MOVER,
        " or there.start is None or mine.merges:\n",
        " or there.start is None:\n",
        (BOTH_SIDES,),
    ),
    Mutant(
        "what another sync brought meanwhile is taken for somebody's work",
        "transfer/agreement.py",
        "        if meeting.mine is None or not meeting.has_theirs or not _agree(going, theirs, meeting.last):\n",
        "        if True:\n",
        (MOVING_AT_ONCE,),
    ),
    Mutant(
        "blobs are read while somebody may collect them",
        MOVER,
        "            with held(source), target.keeping():\n",
        "            with target.keeping():\n",
        (MOVING_CONTENT,),
    ),
    Mutant(
        "a tree is sent although something below it cannot be",
        "transfer/blobs.py",
        "                    if not cargo.lost.isdisjoint(cargo.below.get(name, ())):\n",
        "                    if False:\n",
        (MOVING_CONTENT,),
    ),
    Mutant(
        "an edited line becomes right when it is renumbered",
        RENUMBER,
        "    if entry.unverified:\n",
        "    if False:\n",
        (MOVING_DAMAGE,),
    ),
    Mutant(
        "what undo needs keeps its old number",
        "log/entry.py",
        "    undoes: EntryRef = 0\n",
        "    undoes: Number = 0\n",
        (BOTH_SIDES,),
    ),
    Mutant(
        "the older of two titles stays",
        MERGE,
        "        if newest is not None and _when(newest) > _when(entry):\n",
        "        if False:\n",
        (BOTH_SIDES,),
    ),
    Mutant(
        "what is only in the trash there comes back",
        MOVER,
        "        if name in self._deleted and name in self._live:\n",
        "        if False:\n",
        (MOVING,),
    ),
    # ── in the browser ──
    Mutant(
        "web: any name of this machine is answered",
        "web/guard.py",
        "if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):",
        "if len(hosts) != 1:",
        (WEB_GUARD,),
    ),
    Mutant(
        "web: what changes something needs no token of its page",
        "web/guard.py",
        """if not hmac.compare_digest(headers.get("x-turnlog-token", "").encode(), self._page_token.encode()):""",
        "if False:",
        (WEB_GUARD,),
    ),
    Mutant(
        "web: who leaves is worked for to the end",
        "web/leaving.py",
        "            waiter.leave()\n",
        "",
        ("tests/web/test_leaving.py",),
    ),
    Mutant(
        "catalog: a question that nobody waits for is answered",
        "catalog/question.py",
        "        whole.heed(waiter.has_left)\n",
        "",
        ("tests/catalog/test_waiter.py",),
    ),
    Mutant(
        "web: a rewind of another plan than the one on the page",
        "reader/takeback.py",
        "        if stamp != stamp_of_plan(session, plan):",
        "        if not stamp:",
        (WEB_FILES,),
    ),
    Mutant(
        "tui: an answer to what is no longer in the field is shown",
        "tui/errand.py",
        "                is_wanted = not errand.waiter.has_left()",
        "                is_wanted = True",
        ("tests/tui/test_errand.py",),
    ),
    Mutant(
        "tui: the size is asked of stdout",
        "tui/terminal.py",
        "os.get_terminal_size(2)",
        "os.get_terminal_size(1)",
        ("tests/tui/test_terminal.py",),
    ),
    Mutant(
        "tui: after fg nothing is drawn",
        "tui/browser.py",
        "        self.screen.refresh(layout=True)",
        "        pass",
        ("tests/tui/test_terminal.py",),
    ),
    Mutant(
        "compare: what was spent on another branch counts",
        "session/comparison.py",
        "            is_standing = entry.to in own\n",
        "            is_standing = True\n",
        ("tests/session/test_compare.py",),
    ),
    Mutant(
        "compare: only the same entries are in common, not the same words",
        "session/comparison.py",
        "        if one.id != other.id and one.says != other.says:\n",
        "        if one.id != other.id:\n",
        ("tests/session/test_compare.py",),
    ),
    Mutant(
        "web: a result is parted from its call",
        "reader/conversation.py",
        """if not (self._asked and (not is_node or kind == "tool")):""",
        "if not (self._asked and not is_node):",
        (WEB_PAGES, "tests/reader/test_conversation.py"),
    ),
    # ── what is shown, and what is not ──
    Mutant(
        "shown: a page that does not escape",
        "view/html.py",
        "            return escape(shown, quote=True)\n",
        "            return shown\n",
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "shown: a page that lets links lead anywhere",
        "view/html.py",
        'return url.lower().startswith(("https://", "http://", "mailto:"))',
        "return True",
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "shown: a fence as long as one inside",
        "view/document.py",
        'ticks = "`" * max(3, 1 + max(',
        'ticks = "`" * max(3, 0 * max(',
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "shown: a bar that ends code in a table",
        "view/document.py",
        '" | ".join(map(_cell, row))',
        '" | ".join(map(_spans, row))',
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "shown: escape sequences of a tool",
        "view/visible.py",
        '    return safe(text.replace("\\r\\n", "\\n") if "\\r" in text else text)\n',
        "    return text\n",
        (SHOWN_ATTACKS,),
    ),
    Mutant(
        "redacted: only where it was found first",
        "view/redact.py",
        "            self._known.setdefault(secret, kind)\n",
        "            pass\n",
        (REDACTED,),
    ),
    Mutant(
        "redacted: every block by itself",
        "view/redact.py",
        '        whole = "".join(pieces)\n',
        "        return [self.text(piece) for piece in pieces]\n        whole = ''\n",
        (REDACTED,),
    ),
    Mutant(
        "redacted: a value over and over again",
        "view/assigned.py",
        "after = seen if tries > _TRIES else after",
        "after = after",
        (REDACTED,),
    ),
    Mutant(
        "redacted: no private key whose end is missing",
        "view/secret.py",
        "done = _last(text, end) if has_end else _run(text, match.end())",
        "done = _last(text, end) if has_end else match.end()",
        (REDACTED,),
    ),
    # Conversations and states.
    Mutant(
        "whoever is gone has crashed, known or not",
        "catalog/index/cards.py",
        'return "crashed" if is_there is False and',
        'return "crashed" if',
        (STATES,),
    ),
    Mutant(
        "a line that git brought is the turn's that ran it",
        "blame/trail.py",
        "            if not step.is_commit:\n                sources.append((step.old, step.new))\n",
        "            if not step.is_commit:\n                pass\n",
        ("tests/blame/test_git.py",),
    ),
    Mutant(
        "of turns at once the first one gets the line",
        "blame/trail.py",
        "            return Verdict(works, SEVERAL, at=at)",
        "            return Verdict(works[:1], at=at)",
        ("tests/blame/test_whose.py",),
    ),
    Mutant(
        "what a rewind brought back is followed from the wrong checkpoint",
        "rewind/chronology.py",
        "if seq <= head.asof and seq < head.before",
        "if seq < head.before",
        ("tests/blame/test_whose.py",),
    ),
    Mutant(
        "what came behind a turn that was cut short is the turn's",
        "rewind/chronology.py",
        "is_doubtful=bool(span.doubt)",
        "is_doubtful=False",
        ("tests/blame/test_whose.py",),
    ),
    Mutant(
        "checkpoints of one millisecond are taken in any order",
        "rewind/chronology.py",
        "if len({id(witness) for _, witness in pairs}) > 1:",
        "if not pairs:",
        ("tests/workspace/test_two_agents.py",),
    ),
    Mutant(
        "a file that one of several declared is its own, whatever else happened to it",
        "rewind/timeline.py",
        "steps = {*self.changes(numbers, seen), (first, last)}",
        "steps = {(first, last)}",
        ("tests/workspace/test_two_agents.py",),
    ),
    Mutant(
        "what others may have done in turns that were given up is told apart as well",
        "rewind/others.py",
        "is_clear = all(view.is_turn and view.before is not None and view.after is not None for view in seen)",
        "is_clear = True",
        ("tests/workspace/test_two_agents.py",),
    ),
    Mutant(
        "wherever an agent goes is scanned",
        "live/event.py",
        "if main is not None and repository_place(main) == repository_place(top) and not",
        "if main is not None and not",
        ("tests/live/test_where.py",),
    ),
    Mutant(
        "the turn that begins is brought in before it begins",
        "live/past.py",
        "reading.steps = takewhile(is_before, reading.steps)",
        "takewhile(is_before, reading.steps)",
        ("tests/live/test_past.py",),
    ),
    Mutant(
        "an edit that failed is declared",
        "live/payload.py",
        "if self._failed or self._tool.lower()",
        "if self._tool.lower()",
        ("tests/live/test_hook.py",),
    ),
    Mutant(
        "a safety net is as good as a conversation",
        "thread/report.py",
        'return state.start.get("agent") == NET and not spoken',
        "return False",
        (RUNS,),
    ),
    # What agents are told.
    Mutant(
        "mcp: the scope is not looked at once more",
        "mcp/scope.py",
        "if card is None or not self.covers(card.workspace):",
        "if card is None:",
        (SERVED,),
    ),
    Mutant(
        "mcp: what a query says is not narrowed",
        "mcp/scope.py",
        "return str(Query(asked.terms, (*asked.filters, *own, *more)))",
        "return str(Query(asked.terms, (*asked.filters, *more)))",
        (SERVED,),
    ),
    Mutant(
        "mcp: a snippet is cut before its secrets are taken out",
        "catalog/ask/search.py",
        'whole = clean(found.text if found.text is not None else texts.get(found.id, ""))',
        'whole = found.text if found.text is not None else texts.get(found.id, "")',
        (SERVED,),
    ),
    Mutant(
        "mcp: a repository is believed about other folders",
        "workspace/git.py",
        "if git is None or back is None or os.path.realpath(back) != os.path.realpath(place):",
        "if git is None:",
        (SERVED,),
    ),
    Mutant(
        "mcp: the session that asks is found",
        "mcp/caller.py",
        'return [Filter("session", hidden, negated=True)] if hidden else [], has_tools',
        "return [], has_tools",
        (SERVED,),
    ),
    Mutant(
        "mcp: any token will do",
        "mcp/tools/rewind.py",
        "if token != wanted.token:",
        "if len(token) != len(wanted.token):",
        (SERVED_REWIND,),
    ),
    Mutant(
        "mcp: what is cancelled is answered",
        "mcp/protocol.py",
        "if self._now is not None and self._now in self._cancelled:",
        "if False:",
        (SERVER,),
    ),
    Mutant(
        "mcp: who came later is not told that we are gone from a file",
        "machine/edit.py",
        "if theirs is not None and theirs.before == imprint.after:",
        "if False:",
        (SERVER_INSTALLING,),
    ),
    # Hooks in other programs' settings, and what they fill.
    Mutant(
        "hooks: a user's place behind ours moves when ours goes",
        "hooks/entries.py",
        "if agent.file.keeps_places and one.group < len(groups) - 1:",
        "if False:",
        (INSTALLING,),
    ),
    Mutant(
        "hooks: lines that both changed are merged in any case",
        "machine/imprint.py",
        "return merged if merged is not None and same(merged, rest) else rest",
        "return before",
        (INSTALLING,),
    ),
    Mutant(
        "hooks: a program that is gone is not looked for",
        "hooks/call.py",
        '2>/dev/null || :"',
        '"',
        (LAUNCHING,),
    ),
    Mutant(
        "hooks: what is brought in later says that a turn went on",
        "rewind/span.py",
        "    return entry.origin is None and not (begun.is_relayed and isinstance(entry, Turn))",
        "    return True",
        (RELAY,),
    ),
    Mutant(
        "hooks: a turn that is open has all that changed since its last tool",
        "rewind/span.py",
        "            elif begun.is_relayed:  # nobody tells of an interruption, so it may be over",
        "            elif False:",
        (RELAY,),
    ),
    Mutant(
        "hooks: a turn that was interrupted goes on",
        "live/event.py",
        " and was_interrupted(self._agent, turn, path) and relay.cut(turn)",
        " and False",
        (HOOK,),
    ),
    Mutant(
        "hooks: the same beginning told twice is two turns",
        "rewind/relay.py",
        "        return native in (native_of(state.turn), native_of(state.turn_before))",
        "        return False",
        (RELAY,),
    ),
    Mutant(
        "hooks: what an agent writes down after a rewind takes it back",
        "exchange/importer.py",
        "        return self._moved > 0 and all(turn.seq < self._moved for turn in self._claims.told.values())",
        "        return False",
        (TOLD,),
    ),
    Mutant(
        "hooks: an id may be a path",
        "live/payload.py",
        '    return value if isinstance(value, str) and _ID.fullmatch(value) is not None else ""',
        '    return value if isinstance(value, str) else ""',
        (HOOK,),
    ),
    Mutant(
        "hooks: what goes on behind an agent's back holds what it left open",
        "live/hook.py",
        "    os.closerange(write + 1, highest + 1)",
        "    os.closerange(write + 1, write + 1)",
        (HOOK,),
    ),
    Mutant(
        "limit: the newest session of a folder may go",
        "thread/garbage.py",
        "live = {row.first for row in store.listing()} - {*spared}",
        "live = {row.first for row in store.listing()}",
        (LIMIT,),
    ),
    Mutant(
        "limit: the last tool of a turn that was cut goes like any other",
        "thread/garbage.py",
        'tools[item.turn] = [kept] if item.when == "tool" else []',
        'kept.is_inside, tools[item.turn] = item.when == "tool", []',
        (LIMIT,),
    ),
]


class Outcome(NamedTuple):
    mutant: str
    verdict: str
    seconds: float
    detail: str

    @property
    def is_good(self) -> bool:
        return self.verdict == "noticed"


def plant(mutant: Mutant, src: Path) -> str | None:
    """Put the fault into a copy; the reason if that cannot be done."""
    path = src / "turnlog" / mutant.path
    text = path.read_text(encoding="utf-8")
    if (count := text.count(mutant.old)) != 1:
        return f"its text is {count} times in {mutant.path}"
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    return None


def run_tests(src: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """pytest against a copy of the code: its exit code, and its last words."""
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider",
        "-o", f"faulthandler_timeout={_PATIENCE_S}", *tests,
    ]  # fmt: skip
    paths = [str(src), str(ROOT)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True, check=False, text=True, timeout=_PATIENCE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 1, f"hangs for {_PATIENCE_S} s"
    words = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, words[0] if words else (done.stdout + done.stderr).strip()[-200:]


def try_out(mutant: Mutant) -> Outcome:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="turnlog-mutant-") as folder:
        src = Path(folder) / "src"
        shutil.copytree(ROOT / "src", src, ignore=shutil.ignore_patterns("__pycache__"))
        problem = plant(mutant, src)
        if problem is not None:
            return Outcome(mutant.name, "not planted", 0.0, problem)
        code, words = run_tests(src, mutant.tests)
    seconds = time.monotonic() - begin
    if code == 1:
        return Outcome(mutant.name, "noticed", seconds, words.removeprefix("FAILED ").partition(" - ")[0])
    return Outcome(mutant.name, "SURVIVED" if code == 0 else "broken", seconds, words)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only faults whose name has one of these words")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    mutants = [m for m in MUTANTS if not chosen.names or any(name in m.name for name in chosen.names)]
    if not mutants:
        print("no fault has such a name")
        return 1
    tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    code, words = run_tests(ROOT / "src", tests)
    if code:
        print(f"the tests fail without any fault: {words}")
        return 1
    with ThreadPoolExecutor(chosen.workers) as pool:
        outcomes = []
        for outcome in pool.map(try_out, mutants):
            outcomes.append(outcome)
            print(f"{outcome.verdict:<12} {outcome.seconds:5.1f} s  {outcome.mutant:<60} {outcome.detail}", flush=True)
    bad = [outcome for outcome in outcomes if not outcome.is_good]
    print(f"{len(outcomes) - len(bad)} of {len(outcomes)} faults noticed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
