"""`turnlog completion`."""

from __future__ import annotations

import os
from pathlib import PurePath

from turnlog.cli.frame.command import Argument, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import UsageError

_BASH = r"""
_turnlog() {
    local kind="" line="${COMP_LINE:0:COMP_POINT}"
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ -z $kind ]]; then kind=$line; else COMPREPLY+=("$line"); fi
    done < <(_TURNLOG_COMPLETE=bash "$1" "$line" "$COMP_WORDBREAKS" "$COMP_TYPE" "$COLUMNS" 2>/dev/null)
    case $kind in
        files) compopt -o default 2>/dev/null ;;
        folders) compopt -o dirnames 2>/dev/null ;;
    esac
}
complete -o nosort -F _turnlog turnlog 2>/dev/null || complete -o default -F _turnlog turnlog
"""

_ZSH = r"""
_turnlog() {
    local line
    local -a lines found
    lines=("${(@f)$(_TURNLOG_COMPLETE=zsh ${~${(Q)words[1]}} "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    case $lines[1] in
        files) _files; return ;;
        folders) _files -/; return ;;
    esac
    for line in "${(@)lines[2,-1]}"; do
        found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    _describe -V turnlog found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _turnlog "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
    compdef _turnlog turnlog
fi
"""

_FISH = r"""
function __turnlog_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct | string collect --allow-empty)
    set -l lines (_TURNLOG_COMPLETE=fish $words[1] $words[2..] $word 2>/dev/null)
    switch "$lines[1]"
        case files
            __fish_complete_path (commandline -ct)
        case folders
            __fish_complete_directories (commandline -ct)
        case '*'
            printf '%s\n' $lines[2..]
    end
end
complete --command turnlog --no-files --keep-order --arguments '(__turnlog_complete)'
"""

_SHELLS = {
    "bash": ("""echo 'eval "$(turnlog completion bash)"' >> ~/.bashrc""", _BASH),
    "zsh": ("""echo 'eval "$(turnlog completion zsh)"' >> ~/.zshrc""", _ZSH),
    "fish": ("turnlog completion fish > ~/.config/fish/completions/turnlog.fish", _FISH),
}
GROUP = "Care", 19
CHANGES = shape.NOTHING
FIELDS = {
    "shell": shape.text("which"),
    "install": shape.text("the command that installs it permanently"),
    "script": shape.text("the script for the shell"),
}


@declare(Argument("shell", choices=tuple(_SHELLS)))
def command(shell: str | None, as_json: bool) -> None:
    """Print the script that lets a shell complete what you type.

    It completes commands, options, names of agents, and sessions: by handle, id or agent:id, with their titles.
    Sessions come from the index without updating it, so they appear at once; `turnlog ls` updates it. The default is
    your own shell.

    \b
    eval "$(turnlog completion bash)"        for this shell only
    turnlog completion zsh                   the first line says how to keep it
    """
    if shell is None:
        shell = PurePath(os.environ.get("SHELL", "")).name
        if shell not in _SHELLS:
            raise UsageError(f"which shell: {', '.join(_SHELLS)}")
    install, body = _SHELLS[shell]
    head = "#compdef turnlog\n" if shell == "zsh" else ""
    script = f"{head}# To keep it: {install}{body}".rstrip()
    if as_json:
        print_json({"shell": shell, "install": install, "script": script})
        return
    print(script)
