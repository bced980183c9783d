"""Faults in `store/files`: the log file, its tail and who holds it."""

from tests.mutants.mutant import Mutant

CRASHES = "tests/store/test_crash_states.py"
ERRORS = "tests/store/test_io_errors.py"
PROCESSES = "tests/store/test_processes.py"
KILLS = "tests/store/test_kill9.py"
LOCKS = "tests/store/test_locks.py"
DOUBT = "tests/store/test_doubt.py"
LOGFILE = "store/files/logfile.py"
INTERRUPTS = "tests/session/test_interrupts.py"
TAIL = "store/files/tail.py"
KNOWN = "store/files/known.py"
HANDLE = "store/files/handle.py"
ERASING = "tests/session/test_erasing.py"

MUTANTS = [
    Mutant(
        "erasing: what a writer gave up stays as it was",
        "store/files/rewriting.py",
        "counted[before - 1][1] > offset):",
        "counted[before - 1][1] <= offset):",
        (f"{ERASING}::test_what_was_left_of_writes_and_repairs_goes_as_well",),
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
        "the line that seals is not synced before others",
        LOGFILE,
        "            self._sync_or_give_up()\n\n    def _sync_before_append",
        "            pass\n\n    def _sync_before_append",
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
        "        self.tail = None\n        self.handle.abandon()\n        self._try_to_cut()\n",
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
        "the lock is kept by a descriptor that is given up",
        HANDLE,
        "            self._disk.unlock(self.fd)\n            self.abandoned.append(self.fd)\n",
        "            self.abandoned.append(self.fd)\n",
        (f"{ERRORS}::test_a_descriptor_that_is_given_up_keeps_no_lock_while_another_thread_uses_it",),
    ),
    Mutant(
        "a failed write is not cut back",
        LOGFILE,
        "            self._disk.ftruncate(self.handle.fd, start)\n            self._unsynced.waiting.pop()\n",
        "            pass\n",
        (ERRORS,),
    ),
    Mutant(
        "an id counts twice if another object wrote it",
        KNOWN,
        "        self._forgotten = _counter(new_id())\n",
        "        pass\n",
        (ERRORS,),
    ),
    Mutant(
        "a session that a dead process made is taken for synced",
        LOGFILE,
        "            if self._durable:\n                self._disk.sync_folder(folder)\n",
        "",
        (CRASHES,),
    ),
    Mutant(
        "the lock of a log stays held after an interrupt",
        LOGFILE,
        "        except BaseException:\n            self.tail = None\n            handle.abandon()\n",
        "        except BaseException:\n            self.tail = None\n",
        (INTERRUPTS,),
    ),
    Mutant(
        "nobody looks what others wrote",
        LOGFILE,
        "        elif size != tail.end:\n",
        "        elif False:\n",
        (PROCESSES,),
    ),
    Mutant(
        "a file that is replaced twice is looked at once",
        LOGFILE,
        "        while (status.st_dev, status.st_ino) != handle.identity:\n",
        "        if (status.st_dev, status.st_ino) != handle.identity:\n",
        (ERASING,),
    ),
    Mutant(
        "a file that was replaced is not noticed",
        LOGFILE,
        "        while (status.st_dev, status.st_ino) != handle.identity:\n",
        "        while False:\n",
        (LOCKS,),
    ),
    Mutant(
        "a network file system is not noticed",
        LOGFILE,
        "            self._disk.refuse_remote(folder)\n",
        "",
        (LOCKS,),
    ),
    Mutant(
        "the newest file has the newest entry",
        "store/files/listing.py",
        "not is_wrong and rows[-1].order.at_ms / 1000 > changed[-1][0]",
        "not is_wrong",
        ("tests/store/test_listing.py",),
    ),
]
