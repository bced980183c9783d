"""Git's settings are read as git reads them, beside git itself."""

import os
import subprocess
from pathlib import Path

import pytest

import turnlog
from turnlog.session.interior import interior
from turnlog.workspace.ignore.outside import global_excludes
from turnlog.workspace.tree import decode_tree

PERSONAL = {
    "plain": "[core]\n\texcludesfile = ~/mine\n",
    "with a comment": "[core]\n\texcludesfile = ~/mine  # what I never want\n",
    "with another comment": "[core]\nexcludesFile=~/mine;x\n",
    "quoted": '[core]\n\texcludesfile = "~/mi ne" ; mine\n',
    "quoted in part": '[core]\n\texcludesfile = ~/mi"  #"ne  \n',
    "escaped": '[core]\n\texcludesfile = ~/mi\\"ne\\\\x\n',
    "over two lines": "[core]\n\texcludesfile = ~/mi\\\nne\n",
    "on the line of its section": "[core] excludesfile = ~/mine\n",
    "twice": "[core]\n\texcludesfile = ~/first\n[user]\n\tname = me\n[CORE]\n\tEXCLUDESFILE = ~/mine\n",
    "in a section below": '[core "x"]\n\texcludesfile = ~/first\n[core]\n\tbare = false\n',
    "commented out": "[core]\n\t# excludesfile = ~/mine \\\n\tbare = false\n",
    "with Windows line ends": "[core]\r\n\texcludesfile = ~/mine\r\n",
    "empty": "[core]\n\texcludesfile =\n",
    "included": "[include]\n\tpath = more\n",
    "included from elsewhere": "[core]\n\texcludesfile = ~/first\n[include]\n\tpath = ~/more # and more\n",
    "overridden after the include": "[include]\n\tpath = more\n[core]\n\texcludesfile = ~/mine\n",
    "included for this folder": '[includeIf "gitdir:~/project/"]\n\tpath = more\n',
    "included for folders of this name": '[includeIf "gitdir:proj*/"]\n\tpath = more\n',
    "included for a folder beside it": '[includeIf "gitdir:./project/.git"]\n\tpath = more\n',
    "included for other folders": '[includeIf "gitdir:~/work/"]\n\tpath = more\n',
    "included whatever the case": '[includeIf "gitdir/i:~/PROJECT/"]\n\tpath = more\n',
    "included, and not there": "[include]\n\tpath = ~/nowhere\n",
}
OF_REPOSITORY = {"nothing": "", "its own": "[core]\n\texcludesfile = ../own\n"}


@pytest.mark.parametrize("inner", sorted(OF_REPOSITORY))
@pytest.mark.parametrize("name", sorted(PERSONAL))
def test_the_excludes_file_is_the_one_that_git_names(tmp_path: Path, name: str, inner: str):
    person, place = tmp_path / "me", tmp_path / "me/project"
    (person / ".config/git").mkdir(parents=True)
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(person)}
    subprocess.run(["git", "init", "-q", str(place)], env=env, check=True)
    with (place / ".git/config").open("a") as file:
        file.write(OF_REPOSITORY[inner])
    (person / ".config/git/config").write_text("[core]\n\texcludesfile = ~/oldest\n")
    (person / ".gitconfig").write_text(PERSONAL[name], newline="")
    (person / "more").write_text("[core]\n\texcludesfile = ~/of-more\n")
    told = subprocess.run(
        ["git", "config", "--type=path", "--get", "core.excludesFile"],
        cwd=place,
        env=env,
        capture_output=True,
        text=True,
    )

    def expand(path: str) -> str:
        return str(person) + path[1:] if path.startswith("~") else path

    found = global_excludes(str(place), str(person / ".config"), expand)
    assert found == os.path.join(place, told.stdout.removesuffix("\n"))


def test_a_file_that_includes_itself_is_read_a_few_times(tmp_path: Path):
    (tmp_path / ".gitconfig").write_text("[core]\n\texcludesfile = /mine\n[include]\n\tpath = .gitconfig\n")
    assert global_excludes(None, str(tmp_path), lambda path: path.replace("~", str(tmp_path))) == "/mine"


def test_what_the_global_rules_leave_out_stays_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its content must not go where the checkpoint goes."""
    person, place = tmp_path / "me", tmp_path / "project"
    person.mkdir()
    (place / ".git").mkdir(parents=True)
    (place / "src").mkdir()
    (person / ".gitconfig").write_text("[core]\n\texcludesfile = ~/never # on no account\n")
    (person / "never").write_text("/.env\n")
    (place / ".env").write_text("TOKEN=1")
    (place / "src/.env").write_text("not at the top of the repository")
    monkeypatch.setenv("HOME", str(person))
    with turnlog.open("memory:") as home:

        def names(folder: Path) -> set[bytes]:
            checkpoint = home.create(workspace=folder).checkpoint()
            return set(decode_tree(interior(home).store.get(checkpoint.roots[0].tree)))

        assert b".env" not in names(place)
        assert b".env" in names(place / "src")
