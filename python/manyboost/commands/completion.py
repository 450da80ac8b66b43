"""``manyboost completion``: a script that lets a shell complete verbs, options and their values."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manyboost.commands import show
from manyboost.commands.parameters import flag, values_of

SUMMARY = "Print a script with which bash, zsh or fish completes commands."

_EPILOG = """\
to use it:
  bash   eval "$(manyboost completion bash)"                       in ~/.bashrc
  zsh    eval "$(manyboost completion zsh)"                        in ~/.zshrc, after compinit
  fish   manyboost completion fish > ~/.config/fish/completions/manyboost.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell")


def run(arguments: argparse.Namespace) -> None:
    """Print the script."""
    from manyboost.cli import VERBS, parser_of

    verbs = {
        name: Verb(module.SUMMARY, _options(parser_of(name))) for name, module in VERBS.items()
    }
    show({"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](verbs))


@dataclass(frozen=True)
class Option:
    """An option: its names, what it means, and the values it may have if these are few."""

    flags: Sequence[str]
    help: str
    values: Sequence[str]
    takes_value: bool


@dataclass(frozen=True)
class Verb:
    """A verb: what it does, and its options."""

    summary: str
    options: Sequence[Option]

    @property
    def flags(self) -> list[str]:
        """All options, as one writes them."""
        return [name for option in self.options for name in option.flags]


def _options(parser: argparse.ArgumentParser) -> list[Option]:
    from manyboost.params import PARAMS

    by_flag = {flag(name): name for name in PARAMS}
    found = []
    for action in parser._actions:
        values = [str(choice) for choice in action.choices or ()]
        flags = list(action.option_strings)
        if not flags:
            # The shell that completion is for is a value without a flag.
            continue
        if not values and action.metavar == "VALUE" and flags[0] in by_flag:
            values = values_of(by_flag[flags[0]])
        meaning = re.split(r"[.:;(] ?", (action.help or "").replace("%%", "%"))[0].strip()
        found.append(Option(flags, meaning, values, action.nargs != 0))
    return found


def _bash(verbs: Mapping[str, Verb]) -> str:
    values = "\n".join(
        f'        "{name} {each}") words="{" ".join(option.values)}";;'
        for name, verb in verbs.items()
        for option in verb.options
        for each in option.flags
        if option.values
    )
    flags = "\n".join(
        f'            {name}) words="{" ".join(verb.flags)}";;' for name, verb in verbs.items()
    )
    return f"""\
# Completion of manyboost for bash: eval "$(manyboost completion bash)"
_manyboost() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=($(compgen -W "{" ".join(verbs)} --help --version" -- "$current"))
        return
    fi
    case "${{COMP_WORDS[1]}} $previous" in
        "completion completion") words="bash zsh fish";;
{values}
    esac
    if [[ -z $words && $current == -* ]]; then
        case "${{COMP_WORDS[1]}}" in
{flags}
        esac
    fi
    # Without words of its own the shell completes names of files.
    COMPREPLY=()
    [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _manyboost manyboost"""


def _quoted(text: str) -> str:
    """Return text in single quotes, as all three shells read it."""
    return "'" + text.replace("'", "") + "'"


def _zsh(verbs: Mapping[str, Verb]) -> str:
    summaries = "\n".join(
        "        " + _quoted(f"{name}:{verb.summary.replace(':', '')}")
        for name, verb in verbs.items()
    )
    cases = []
    for name, verb in verbs.items():
        lines = []
        for option in verb.options:
            meaning = re.sub(r"[\[\]:]", "", option.help)
            for each in option.flags:
                spec = f"*{each}[{meaning}]"
                if option.values:
                    spec += f":value:({' '.join(option.values)})"
                elif option.takes_value:
                    spec += ":value:_files"
                lines.append(f"                {_quoted(spec)}")
        last = "*:shell:(bash zsh fish)" if name == "completion" else "*:file:_files"
        lines.append(f"                {_quoted(last)}")
        joined = " \\\n".join(lines)
        cases.append(f"        {name}) _arguments \\\n{joined};;")
    return f"""\
#compdef manyboost
# Completion of manyboost for zsh: eval "$(manyboost completion zsh)"
_manyboost() {{
    local -a verbs
    verbs=(
{summaries}
    )
    if (( CURRENT == 2 )); then
        _describe verb verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
{chr(10).join(cases)}
    esac
}}
compdef _manyboost manyboost"""


def _fish(verbs: Mapping[str, Verb]) -> str:
    lines = [
        "# Completion of manyboost for fish: in ~/.config/fish/completions/manyboost.fish",
        "complete -c manyboost -n __fish_use_subcommand -f -l help -d 'Show help'",
        "complete -c manyboost -n __fish_use_subcommand -f -l version -d 'Show the version'",
    ]
    for name, verb in verbs.items():
        lines.append(
            f"complete -c manyboost -n __fish_use_subcommand -f -a {name} "
            f"-d {_quoted(verb.summary)}"
        )
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for option in verb.options:
            names = " ".join(
                f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}"
                for each in option.flags
            )
            line = f"complete -c manyboost {seen} {names} -d {_quoted(option.help)}"
            if option.values:
                line += f" -x -a {_quoted(' '.join(option.values))}"
            elif option.takes_value:
                line += " -r"
            lines.append(line)
    lines.append(
        "complete -c manyboost -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'"
    )
    return "\n".join(lines)
