"""Faults in `workspace`."""

from tests.mutants.mutant import Mutant

SERVED = "tests/mcp/test_tools.py"
REWINDS = "tests/rewind/test_rewind_files.py"
INTERRUPTED = "tests/rewind/test_interrupted.py"
FAULTS = "tests/workspace/test_faults.py"
ATTACKS = "tests/workspace/test_attacks.py"
RACES = "tests/workspace/test_races.py"
COLLECTING = "tests/rewind/test_collect.py"
PLAN = "workspace/plan.py"
RESTORE = "workspace/restore.py"
SCAN = "workspace/scan.py"
READ = "workspace/read.py"

MUTANTS = [
    Mutant(
        "what somebody else changed is no conflict",
        PLAN,
        "    broken = _conflict(path, request.target, request.now, mine, request.get)\n",
        '    broken = ""\n',
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
        "below = os.open(name, FOLDER_FLAGS, dir_fd=fd)\n",
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
        "the mode of a file changes under all its names",
        RESTORE,
        "            if is_same and state is not None and state.links == 1:\n",
        "            if is_same:\n",
        (ATTACKS,),
    ),
    Mutant(
        "unknown is treated as absent",
        "workspace/folderscan.py",
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
        "        if path_state(fd, name) != state:  # the file was saved while we wrote ours\n"
        "            return _CHANGED\n",
        "",
        (RACES,),
    ),
    Mutant(
        "half of a file is taken into a checkpoint",
        SCAN,
        "if HALF_DONE.fullmatch(name):",
        "if False:",
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
        "what a scan remembers is believed although it is damaged",
        "workspace/cache.py",
        """    if crc32(data[4:]).to_bytes(4, "little") != data[:4]:\n""",
        "    if False:\n",
        (COLLECTING,),
    ),
    Mutant(
        "mcp: a repository is believed about other folders",
        "workspace/git.py",
        "if git is None or back is None or os.path.realpath(back) != os.path.realpath(folder):",
        "if git is None:",
        (SERVED,),
    ),
]
