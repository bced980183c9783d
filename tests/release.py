"""`make release`: what would be uploaded, built from a clean checkout and tried where nothing else is. Uploads nothing.

The source distribution is built from the last commit, the wheel from the source distribution. Each is installed into
an empty environment and shows the README's first screen there, with every Python of the classifiers that is here. Then
uv, pipx and pip install, upgrade and remove it, each in a home of its own, and leave the sessions.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ("tests/log", "tests/test_format_doc.py", "tests/test_readme.py", "tests/store/test_homes.py")
"""What is run in the unpacked source distribution: tests that need data, documents and the Makefile."""


class Refused(Exception):
    """Why there is nothing to be released, in one line."""


def main() -> int:
    tools = Path(sys.executable).parent
    try:
        refuse_dirty(ROOT)
        version = version_of(ROOT)
        is_dated = refuse_unwritten(ROOT, version)
        refuse_unkept(ROOT)
        with tempfile.TemporaryDirectory(prefix="turnlog-release-") as folder:
            found = Trial(Path(folder), tools, version).run()
    except (Refused, AssertionError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    (ROOT / "dist").mkdir(exist_ok=True)
    for path, data in found.items():
        (ROOT / "dist" / path).write_bytes(data)
    if not is_dated:
        print(f"CHANGELOG.md still says Unreleased for {version}: put the date there before you upload")
    print(f"nothing was uploaded; that would be: {tools.relative_to(ROOT)}/twine upload dist/turnlog-{version}*")
    return 0


def refuse_dirty(root: Path) -> None:
    """What is not committed would not be in it."""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=True)
    changed = [line[3:] for line in done.stdout.splitlines()]
    if changed:
        more = f" and {len(changed) - 1} more" if changed[1:] else ""
        raise Refused(f"not committed: {changed[0]}{more}; a release is what the last commit says")


def version_of(root: Path) -> str:
    """From the one place where it stands."""
    [version] = re.findall(r'^__version__ = "([^"]+)"$', (root / "src/turnlog/version.py").read_text(), re.MULTILINE)
    return version


def refuse_unwritten(root: Path, version: str) -> bool:
    """The changelog has to tell what is in it; whether it says when."""
    first = re.search(r"^## \[([^]]+)\] - (.+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE)
    if first is None or first[1] != version:
        found = f"its first is {first[1]}" if first else "it has none"
        raise Refused(f"CHANGELOG.md has no section for {version}: {found}")
    return first[2] != "Unreleased"


def refuse_unkept(root: Path) -> None:
    """What this version writes has to be among the homes and databases that all later ones are tried with."""
    kept, hint = root / "tests/store/homes", "add one in tests/store/homes/make.py"
    [layout] = re.findall(r"^LAYOUT = (.+)$", (root / "src/turnlog/layout.py").read_text(), re.MULTILINE)
    homes = []
    for path in kept.glob("[!l]*.tar.xz"):
        with tarfile.open(path) as file:
            told = file.extractfile("home/home.json")
            homes.append(told and json.loads(told.read()))
    if json.loads(layout) not in homes:
        raise Refused(f"no home is kept with {layout}: {hint}")
    level = max(int(path.stem) for path in (root / "src/turnlog/store/postgres/migrations").glob("*.sql"))
    if not (kept / f"level-{level}.tar.xz").exists():
        raise Refused(f"no database is kept after migration {level}: {hint}")


def run(words: list[str | Path], **options: object) -> str:
    """A command that has to work; what it printed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"`{' '.join(map(str, words))}` failed: {(done.stderr or done.stdout).strip()[-2000:]}"
    return done.stdout


class Way(NamedTuple):
    """How one program installs another, upgrades it and removes it."""

    install: list[str | Path]
    upgrade: list[str | Path]
    remove: list[str | Path]


class Trial:
    """One release, tried out in a folder of its own."""

    def __init__(self, folder: Path, tools: Path, version: str) -> None:
        self.folder = folder
        self.tools = tools
        self.version = version
        self.dist = folder / "dist"
        self.near = folder / "near"
        """Every package that is needed, so that nothing else is installed than what was looked at here."""

    def run(self) -> dict[str, bytes]:
        """What is to be uploaded, by name."""
        sdist, wheel = self.build(self.version, self.dist)
        self.look(sdist, wheel)
        self.metadata(sdist, wheel)
        run([self.tools / "pip", "download", "-q", "--dest", self.near, wheel, "hatchling"])
        self.first_screens(sdist, wheel)
        self.sample(sdist)
        self.installers()
        return {path.name: path.read_bytes() for path in (sdist, wheel)}

    # ── what it is ────────────────────────────────────────────────────────────────────────────────

    def build(self, version: str, dist: Path) -> tuple[Path, Path]:
        """From the last commit, with its time; under another version where an upgrade is tried."""
        checkout = self.folder / f"checkout-{version}"
        run(["git", "clone", "-q", "--no-hardlinks", ROOT, checkout])
        (checkout / "src/turnlog/version.py").write_text(
            (checkout / "src/turnlog/version.py").read_text().replace(self.version, version)
        )
        when = run(["git", "log", "-1", "--format=%ct"], cwd=ROOT).strip()
        how = {"env": {**os.environ, "SOURCE_DATE_EPOCH": when}}
        run([self.tools / "hatchling", "build", "-t", "sdist", "-d", dist], cwd=checkout, **how)
        [sdist] = dist.glob(f"turnlog-{version}.tar.gz")
        unpacked = self.unpack(sdist)
        run([self.tools / "hatchling", "build", "-t", "wheel", "-d", dist], cwd=unpacked, **how)
        [wheel] = dist.glob(f"turnlog-{version}-*.whl")
        return sdist, wheel

    def unpack(self, sdist: Path) -> Path:
        with tarfile.open(sdist) as file:
            file.extractall(self.folder / "unpacked", filter="data")
        return self.folder / "unpacked" / sdist.name.removesuffix(".tar.gz")

    def look(self, sdist: Path, wheel: Path) -> None:
        """All that is committed is in the source distribution, and the package alone in the wheel; nothing else."""
        committed = set(run(["git", "ls-files"], cwd=self.folder / f"checkout-{self.version}").splitlines())
        with tarfile.open(sdist) as file:
            inside = {name.partition("/")[2] for name in file.getnames()} - {"PKG-INFO"}
        differ = sorted(inside ^ committed)
        assert not differ, f"the source distribution differs from the checkout: {differ[:9]}"
        with zipfile.ZipFile(wheel) as archive:
            names = {name for name in archive.namelist() if ".dist-info/" not in name}
        package = {name.removeprefix("src/") for name in committed if name.startswith("src/")}
        assert names == package, f"the wheel differs from src: {sorted(names ^ package)[:9]}"
        for path in (sdist, wheel):
            print(f"built      {path.name}, {path.stat().st_size / 1000:,.0f} kB")

    def metadata(self, sdist: Path, wheel: Path) -> None:
        run([self.tools / "twine", "check", "--strict", sdist, wheel])
        with zipfile.ZipFile(wheel) as archive:
            told = archive.read(f"turnlog-{self.version}.dist-info/METADATA").decode()
        assert f"\nVersion: {self.version}\n" in told, "the version in the metadata is another one"
        print("checked    metadata, by twine")

    # ── whether it works ──────────────────────────────────────────────────────────────────────────

    def first_screens(self, sdist: Path, wheel: Path) -> None:
        said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
        claimed = {line.rpartition(" ")[2] for line in said if re.fullmatch(r".*Python :: 3\.\d+", line)}
        for version in sorted(claimed):
            python = shutil.which(f"python{version}")
            if python is None or subprocess.run([python, "--version"], capture_output=True, check=False).returncode:
                print(f"not tried  Python {version}, which is not on this machine")
                continue
            for path in (sdist, wheel) if version == f"3.{sys.version_info.minor}" else (wheel,):
                self.first_screen(python, path)

    def first_screen(self, python: str, path: Path) -> None:
        place = self.folder / f"first-{Path(python).name}-{path.name}"
        run([self.tools / "uv", "venv", "-q", "--python", python, place])
        run([self.tools / "pip", "--python", place / "bin/python", "install", "-q", path])
        run([ROOT / ".venv/bin/python", "-m", "tests.firstscreen", place / "bin/python", place / "trial"], cwd=ROOT)
        print(f"runs       the README's first screen from {path.name}, {Path(python).name}")

    def sample(self, sdist: Path) -> None:
        unpacked = self.unpack(sdist)
        how = {"cwd": unpacked, "env": {**os.environ, "PYTHONPATH": str(unpacked / "src")}}
        run([ROOT / ".venv/bin/python", "-m", "pytest", "-q", "-n", "1", *SAMPLE], **how)
        print(f"passes     {', '.join(SAMPLE)} in the source distribution")

    # ── how it comes and goes ─────────────────────────────────────────────────────────────────────

    def installers(self) -> None:
        later = f"{self.version}.post1"
        _, wheel = self.build(later, self.folder / "later")
        near = ["--no-index", "--find-links", self.near]
        args = f"--pip-args=--no-index --find-links {self.near}"
        uv, pipx, pip = self.tools / "uv", self.tools / "pipx", self.folder / "home-pip/venv/bin/pip"
        ways = {
            "uv": Way(
                [uv, "tool", "install", "-q", *near, "--python", sys.executable, "turnlog"],
                [uv, "tool", "upgrade", "-q", *near, "turnlog"],
                [uv, "tool", "uninstall", "-q", "turnlog"],
            ),
            "pipx": Way(
                [pipx, "install", "--python", sys.executable, args, "turnlog"],
                [pipx, "upgrade", args, "turnlog"],
                [pipx, "uninstall", "turnlog"],
            ),
            "pip": Way(
                [pip, "install", "-q", *near, "turnlog"],
                [pip, "install", "-q", "--upgrade", *near, "turnlog"],
                [pip, "uninstall", "-q", "--yes", "turnlog"],
            ),
        }
        for name, way in ways.items():
            home = self.folder / f"home-{name}"
            (home / "project").mkdir(parents=True)
            for path in self.near.glob("turnlog-*"):
                path.unlink()
            shutil.copy(next(self.dist.glob("*.whl")), self.near)
            if name == "pip":
                run([sys.executable, "-m", "venv", home / "venv"])
            self.comes_and_goes(home, way, wheel)
            print(f"comes      and goes with {name}: {self.version}, then {later}; sessions stay")

    def comes_and_goes(self, home: Path, way: Way, later: Path) -> None:
        surroundings = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}

        def do(words: list[str | Path]) -> str:
            return run(words, cwd=home / "project", env=surroundings)

        do(way.install)
        [program] = [path for path in (home / ".local/bin/turnlog", home / "venv/bin/turnlog") if path.exists()]
        assert self.version in do([program, "--version"])
        do([program, "run", "--", "sh", "-c", "echo hello"])
        shutil.copy(later, self.near)
        do(way.upgrade)
        assert f"{self.version}.post1" in do([program, "--version"])
        assert "echo hello" in do([program, "show"]), "what was written before cannot be read"
        do(way.remove)
        assert not os.path.lexists(program), f"{program} is still there"
        assert list((home / ".turnlog/sessions").glob("*.jsonl")), "the session is gone"
        parts = [*(home / ".local/share").rglob("turnlog"), *(home / "venv").rglob("turnlog")]
        assert not parts, f"left of the program: {parts[:3]}"


if __name__ == "__main__":
    sys.exit(main())
