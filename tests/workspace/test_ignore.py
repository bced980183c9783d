"""What is left out, beside git itself."""

import os
import random
import subprocess
from pathlib import Path

import pytest

import turnlog
from turnlog.session.interior import interior
from turnlog.workspace.ignore.rule import rules_of_tree
from turnlog.workspace.tree import decode_tree, files

PATHS = [
    "a.py", "b.txt", "keep.log", "trace.log", "build/out.o", "build/keep/x", "src/a.py", "src/b.log", "src/build/x.o",
    "src/deep/er/c.txt", "src/deep/er/trace.log", "docs/_build/i.html", "docs/i.md", "logs/a", "logs/b/c", "foo/bar/x",
    "foo/baz/y", "foo/z", "#hash", "with space ", "target", "src/target/t", "ümlaut/ä.txt", "gen/a.txt",
    "src/gen/b.txt",
]  # fmt: skip
RULES = {
    "plain": "*.log\nbuild/\n",
    "only some kinds": "*\n!*/\n!*.py\n",
    "negated": "*.log\n!keep.log\n",
    "rooted": "/build\n/foo/*\n!/foo/bar/\n",
    "stars": "logs/**\n**/gen/*.txt\nsrc/**/c.txt\n",
    "folders only": "target/\n",
    "a folder's insides": "foo/*\n!foo/bar\nfoo/bar/x\n",
    "cannot come back": "build/\n!build/keep/\n!build/keep/x\n",
    "odd": "\\#hash\nwith space\\ \n[abc].py\n?.txt\n# comment\n\n",
    "ranges": "src/deep/[a-f]r/\n*.[oh]\n",
    "not ASCII": "ümlaut/\n",
    "with its line ends": "*.log\r\nbuild/\r\n",
    "with a mark in front": "\ufeff*.log\nfoo/\n",
    "only a negation": "!\n*.log\n",
    "with a backslash at the end": "build\\\n\\/\n*.log\n",
    "a range backwards": "[z-a].py\n*.log\n",
    "not closed": "[a.py\n*.log\n",
    "named classes": "[[:alpha:]].py\n[[:nothing:]].txt\n[[:digit:]\n",
    "negated in brackets": "b[!a]ild\nfo[!a]\nfo[^o]/\nfo[^o]\nlog[!a]\n",
    "escaped in brackets": "[\\a].py\nsrc/[\\]b].log\na[[b]\n",
}


@pytest.mark.parametrize("name", sorted(RULES))
@pytest.mark.parametrize("inner", ["", "!b.log\nbuild\n", "*\n"], ids=["alone", "with rules below", "with all below"])
def test_the_same_files_as_with_git(tmp_path: Path, name: str, inner: str):
    place = tmp_path / "project"
    for path in PATHS:
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(path)
    (place / ".gitignore").write_text(RULES[name], newline="")
    if inner:
        (place / "src/.gitignore").write_text(inner)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env = {**clean, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "XDG_CONFIG_HOME": str(tmp_path)}
    subprocess.run(["git", "init", "-q"], cwd=place, env=env, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"], cwd=place, env=env, check=True, capture_output=True
    ).stdout
    with turnlog.open("memory:") as home:
        checkpoint = home.create(workspace=place).checkpoint()
        trees = interior(home).store

        def get(digest: str):
            return decode_tree(trees.get(digest))

        found = {path for path, node in files(get(checkpoint.roots[0].tree), get) if node.kind == "file"}
    wanted = {path for path in listed.split(b"\0") if path}
    rule_files = {b".gitignore", b"src/.gitignore"}  # always covered, even where they leave out themselves
    assert found - rule_files == wanted - rule_files


def test_any_line_means_what_it_means_to_git(tmp_path: Path):
    """Lines of random pieces, among them many that are malformed."""
    paths = [
        "a", "b", "ab", "a.x", "b/a", "b/a.x", "b/b", "b/b/ab", "b/b/ab/c-d", ".x", "]x", "a]", "[x", "!a", "#a", "a b",
        "a ", "\\a", "b/^a", "A1", "-", "aXb", "aXb/b", "aXb/b/a", "é",
    ]  # fmt: skip
    folders = {"b", "b/b", "b/b/ab", "aXb", "aXb/b"}
    pieces = [
        "a", "b", "x", "ab", "é", ".", "!", "#", " ", "-", "]", "[", "/", "/", "*", "*", "?", "**", "**/", "/**", "\\",
        "\t", "\r", "[a-c]", "[!a]", "[^b]", "[]a]", "[!]a]", "[a-]", "[a\\-c]", "[\\]]", "[z-a]", "[[b]", "[:",
        "[[:alpha:]]", "[[:no:]]", "[[:digit:]-x]",
    ]  # fmt: skip
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    env["HOME"] = str(tmp_path)
    git = ["git", "-c", "core.ignorecase=false", "check-ignore", "--no-index", "-v", "-n", "-z", "--stdin"]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, env=env, check=True)
    for path in paths:
        (tmp_path / path).mkdir(parents=True) if path in folders else (tmp_path / path).touch()
    choose = random.Random(1)
    for _ in range(150):
        lines = ("".join(choose.choices(pieces, k=choose.randint(1, 5))) for _ in range(choose.randint(1, 3)))
        text = "\n".join(lines).encode()
        (tmp_path / ".git/info/exclude").write_bytes(text)
        told = subprocess.run(git, cwd=tmp_path, env=env, input="\0".join(paths).encode(), capture_output=True)
        fields = told.stdout.decode().split("\0")[:-1]
        wanted = {path for rule, path in zip(fields[2::4], fields[3::4], strict=True) if rule and rule[0] != "!"}
        rules = rules_of_tree([(b"", text)])
        found = {path for path in paths if rules.ignores(path.encode(), is_folder=path in folders)}
        found |= {path for path in paths for folder in found if path.startswith(f"{folder}/")}
        assert found == wanted, text


def test_a_line_of_many_stars_takes_no_time():
    rules = rules_of_tree([(b"", b"*a" * 40 + b"b\n")])
    assert not rules.ignores(b"a" * 255, is_folder=False)


@pytest.mark.parametrize("where", ["linked", "main", "below", "submodule"])
def test_what_the_exclude_file_of_a_repository_names_is_ignored_in_each_of_its_worktrees(tmp_path: Path, where: str):
    main, linked = tmp_path / "main", tmp_path / "linked"
    git = ["git", "-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "protocol.file.allow=always"]
    subprocess.run([*git, "init", "-q", str(main)], check=True)
    subprocess.run([*git, "commit", "-qm", "first", "--allow-empty"], cwd=main, check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(linked)], cwd=main, check=True)
    if where == "submodule":
        subprocess.run([*git, "submodule", "--quiet", "add", str(main), "inner"], cwd=linked, check=True)
        (tmp_path / "main/.git/worktrees/linked/modules/inner/info").mkdir(exist_ok=True)
    place = {"main": main, "linked": linked, "below": linked / "src", "submodule": linked / "inner"}[where]
    place.mkdir(exist_ok=True)
    told = subprocess.run(
        [*git, "rev-parse", "--git-path", "info/exclude"], cwd=place, check=True, capture_output=True, text=True
    )
    (place / told.stdout.strip()).write_text("secret.txt\n")
    for name in ("secret.txt", "plain.txt"):
        (place / name).write_text(name)
    with turnlog.open("memory:", covers_ignored=False) as home:
        checkpoint = home.create(workspace=place).checkpoint()
        names = set(decode_tree(interior(home).store.get(checkpoint.roots[0].tree)))
    assert b"plain.txt" in names
    assert b"secret.txt" not in names


def test_a_workspace_inside_an_ignored_folder_is_covered(tmp_path: Path):
    """Whoever chooses a folder as workspace means it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("scratch/\n*.log\n")
    place = tmp_path / "scratch/try"
    place.mkdir(parents=True)
    (place / "a.py").write_text("a")
    (place / "a.log").write_text("a")
    with turnlog.open("memory:", covers_ignored=False) as home:
        s = home.create(workspace=place)
        label = s.checkpoint()
        (place / "a.py").unlink()
        (place / "a.log").unlink()
        s.rewind(to=label)
    assert (place / "a.py").exists()
    assert not (place / "a.log").exists()
