"""`assay completion`: what makes a shell complete the words of `assay`."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.apps.cli import COMPLETE
from assay.base.errors import UsageError
from assay.base.reading import nearest

EXAMPLES = """
Examples:

`assay completion bash > ~/.local/share/bash-completion/completions/assay`

`assay completion zsh > ~/.zfunc/_assay`

`assay completion fish > ~/.config/fish/completions/assay.fish`
"""

BASH = r"""# Completion of `assay` for bash; `assay completion bash` writes it.
_assay() {
    local -a lines
    local line current=${COMP_WORDS[COMP_CWORD]}
    mapfile -t lines < <(printf '%s' "${COMP_LINE:0:COMP_POINT}" \
        | "${COMP_WORDS[0]}" CALL bash "$COMP_WORDBREAKS" 2> /dev/null)
    COMPREPLY=("${lines[@]:1}")
    if [[ ${lines[0]} == files ]]; then
        [[ $current == [:=] ]] && current=
        if [[ ${#COMPREPLY[@]} -eq 0 ]]; then
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        else
            # Beside other words bash quotes no names, and a name may hold what a shell executes.
            while IFS= read -r line; do
                [[ -d $line ]] && line+=/
                COMPREPLY+=("$(printf '%q' "$line")")
            done < <(compgen -f -- "$current")
        fi
    fi
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:=/] ]]; then
        compopt -o nospace
    fi
}
complete -F _assay assay
"""

ZSH = r"""#compdef assay
# Completion of `assay` for zsh; `assay completion zsh` writes it.
_assay() {
    local -a lines values shown
    local line
    lines=("${(@f)$(print -rl -- "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" | ${words[1]} CALL zsh 2> /dev/null)}")
    for line in "${(@)lines[2,-1]}"; do
        [[ -z $line ]] && continue
        values+=("${line%%$'\t'*}")
        shown+=("${${line%$'\t'}/$'\t'/  -- }")
    done
    local -a suffix
    [[ $#values -eq 1 && $values[1] == *[:=/] ]] && suffix=(-S '')
    (( $#values )) && compadd -l -d shown $suffix -a values
    [[ $lines[1] == files ]] && _files
}
if [[ $funcstack[1] == _assay ]]; then
    _assay "$@"
else
    compdef _assay assay
fi
"""

FISH = r"""# Completion of `assay` for fish; `assay completion fish` writes it.
function __assay_complete
    set -l current (commandline -ct)
    set -l lines (printf '%s\n' (commandline -opc) "$current" | command assay CALL fish 2> /dev/null)
    test (count $lines) -gt 1; and printf '%s\n' $lines[2..]
    test "$lines[1]" = files; and __fish_complete_path "$current"
end
complete -c assay -f -a '(__assay_complete)'
"""

SHELLS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help=f"One of: {', '.join(SHELLS)}.")],
) -> None:
    """Print what makes a shell complete verbs, options, targets, studies and run folders."""
    if shell not in SHELLS:
        meant = nearest(shell, SHELLS)
        hint = f"did you mean {meant!r}? " if meant else ""
        raise UsageError(f"{shell!r} is no shell that is known; {hint}accepted: {', '.join(SHELLS)}")
    typer.echo(SHELLS[shell].replace("CALL", COMPLETE), nl=False)
