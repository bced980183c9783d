"""Faults in `store/files`: packs, trash, layout and the disk itself."""

from tests.mutants.mutant import Mutant

CRASHES = "tests/store/test_crash_states.py"
PROCESSES = "tests/store/test_processes.py"
LOCKS = "tests/store/test_locks.py"
FORKS = "tests/session/test_forks.py"
INTERRUPTED = "tests/rewind/test_interrupted.py"
RACES = "tests/workspace/test_races.py"
COLLECTING = "tests/rewind/test_collect.py"
CONTRACT = "tests/store/test_contract.py"
MOVING_CUT = "tests/moving/test_power_cut.py"
MOVING_DAMAGE = "tests/moving/test_damaged.py"
INTERRUPTS = "tests/session/test_interrupts.py"
WAITS = "tests/store/test_waits.py"
NEWER = "tests/cli/test_newer.py"
DISK = "store/files/disk.py"
STORE = "store/files/__init__.py"
LAYOUT = "store/files/homefolder.py"
TRASH = "store/files/trash.py"
PACKS = "store/files/packwriter.py"
SESSION_FILE = "store/files/sessionfile.py"
ADOPTING = "store/files/adopting.py"

MUTANTS = [
    Mutant(
        "the name of a new session is not synced",
        STORE,
        "            self._disk.sync_folder(os.path.join(self._home.folder, subfolder))\n",
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
        "a session that is deleted is not synced into the trash",
        TRASH,
        "                self._disk.sync_folder(os.path.dirname(new))\n",
        "",
        (CRASHES,),
    ),
    Mutant(
        "a purge does not keep what forks need",
        TRASH,
        "            if needed.seq:\n                from",
        "            if False:\n                from",
        (CRASHES, FORKS),
    ),
    Mutant(
        "a purge does not ask whether it can read the forks",
        TRASH,
        "            if row.start is None:\n                return replace(needed, is_unknown=True)\n",
        "            if row.start is None:\n                continue\n",
        (PROCESSES,),
    ),
    Mutant(
        "a fork finds whatever is called like what it builds on",
        STORE,
        "        first_ids = {path: first if first is None else first_id(self._disk, path) for path in existing}\n",
        "        first_ids = dict.fromkeys(existing, first)\n",
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
        "seen.last.seq < parent.seq:\n",
        "False:\n",
        (PROCESSES,),
    ),
    Mutant(
        "a session is moved while others look for what is needed",
        TRASH,
        "            with self._blobs.keeping(), self._locked(session_id, old) as held:",
        "            with self._locked(session_id, old) as held:",
        (PROCESSES,),
    ),
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
        "        before = set(self._known)\n        self.disk.sync_folder(self.folder)\n",
        "        before = set(self._known)\n",
        (CRASHES,),
    ),
    Mutant(
        "a pack that a dead process wrote is taken for synced",
        PACKS,
        "                self._packs.sync_names()  # blobs may have been left out because another pack has them\n",
        "                pass\n",
        (CRASHES,),
    ),
    Mutant(
        "collecting removes packs before what is needed of them is in its new place",
        "store/files/collect.py",
        "    target, _ = _merge(packs, plan.needed_of, without=())\n",
        "    for name in plan.needed_of:\n        packs.disk.unlink(os.path.join(packs.folder, name))\n"
        "    target, _ = _merge(packs, plan.needed_of, without=())\n",
        (CRASHES, PROCESSES),
    ),
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
        "a blob is only looked for where it was",
        "store/files/packs.py",
        "                self._learn_all()  # collected: needed blobs are in another pack by now\n",
        "                pass\n",
        (COLLECTING,),
    ),
    Mutant(
        "a blob that is gone is taken to be there",
        "store/files/packs.py",
        "            if location is not None and not self._exists(location[0]):\n",
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
        "                damaged.add(name)\n",
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
        "leftovers of dead writers stay for ever",
        LAYOUT,
        "                self.disk.unlink(path)\n\n",
        "                pass\n\n",
        (INTERRUPTED,),
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
        '        """See `Renewable`. The lock stays with the parent."""\n        self.close()\n',
        '        """See `Renewable`. The lock stays with the parent."""\n',
        (WAITS,),
    ),
    Mutant(
        "whoever waited long enough goes on without the lock",
        DISK,
        "                    raise waited_too_long(fd) from None\n",
        "                    return\n",
        (WAITS,),
    ),
    Mutant(
        "nobody locks",
        DISK,
        '''        """Take the writer's lock, which the kernel frees when its holder dies. Waits up to a limit."""\n''',
        "        return\n",
        (PROCESSES, LOCKS),
    ),
    Mutant(
        "a node of another process is no conflict",
        SESSION_FILE,
        "            self._refuse_conflict(after, alone)\n",
        "            pass\n",
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
        "the numbers of a home fall",
        LAYOUT,
        "            self._check()  # a newer",
        "            pass  # a newer",
        (NEWER,),
    ),
    Mutant(
        "a pack of a newer version is taken for a damaged one",
        "store/files/packs.py",
        "            if footer.end in NEWER:\n",
        "            if False:\n",
        (NEWER,),
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
        "erasing: an interrupted one is dropped",
        "store/files/erasing.py",
        "        if self._plans().keys() - self._applied - self._refused.keys():\n",
        "        if False:\n",
        ("tests/session/test_erasing.py",),
    ),
    Mutant(
        "packs: one that was collected meanwhile hides what is in another",
        "store/files/packs.py",
        "            except FileNotFoundError:\n                listed = None",
        "            except ZeroDivisionError:\n                listed = None",
        ("tests/store/test_packs.py",),
    ),
]
