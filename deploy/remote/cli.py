"""`ma --url https://… NOUN VERB …`: the verbs are those that the site declares. Beside them `apply`, `plan`
and `export` of settings in a file, and the completion of a shell."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from deploy.console import discard_output
from deploy.remote import output
from deploy.remote.commands import Asked, Described, Parser, asked_of, described, parser_of
from deploy.remote.site import Exit, RemoteError, Site, read_file, rows_of, site_at

MANIFESTS = "/api/v1/manifests/"
LARGEST_FILE = 4 * 1024 * 1024
COMPLETE = "__complete"
COMPLETION = """\
_ma() {
    mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _ma ma ./ma
"""
# Options that come before the noun: with one of them a command is meant for a site.
OPTIONS = ("--url", "--token", "--ca", "--timeout", "--allow-plain-http")
OF_COMPLETION = ("completion", COMPLETE)


def is_meant(given: Sequence[str], environ: Mapping[str, str], local: Iterable[str]) -> bool:
    """`local`: commands of this installation. A site that the environment names has all others."""
    if not given:
        return False
    first = given[0]
    if first in OF_COMPLETION or first.partition("=")[0] in OPTIONS:
        return True
    return bool(environ.get("MA_URL")) and not first.startswith("-") and first not in local


def main(given: Sequence[str], environ: Mapping[str, str], local: Iterable[str]) -> int:
    try:
        if given[0] == COMPLETE:
            return _complete(given[1:], environ, local)
        return _run(_options().parse_args(given), environ)
    except RemoteError as problem:
        print(f"ma: {output.printable(problem.what)}", file=sys.stderr)
        if problem.what_to_do:
            print(f"    {output.printable(problem.what_to_do)}", file=sys.stderr)
        if "--json" in given and problem.answer is not None:
            print(output.as_json(problem.answer))
        return problem.code
    except BrokenPipeError:
        discard_output()
        return Exit.REFUSED


def _options() -> Parser:
    about = "Runs the operations of a site's pages over REST. Defaults: MA_URL, MA_TOKEN."
    parser = Parser(prog="ma", description=about, epilog="docs/how-to/remote.md", allow_abbrev=False)
    parser.add_argument("--url", help="https://HOST[:PORT] of the site")
    parser.add_argument("--token", help="visible to every user of this machine: prefer MA_TOKEN")
    parser.add_argument("--ca", metavar="FILE", default="", help="PEM certificates of the trusted authority")
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=60.0)
    parser.add_argument(
        "--allow-plain-http", action="store_true", help="allow http:// to another host (unencrypted)"
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="NOUN VERB …")
    return parser


def _site(chosen: argparse.Namespace, environ: Mapping[str, str]) -> Site:
    token = chosen.token if chosen.token is not None else environ.get("MA_TOKEN", "")
    return site_at(
        chosen.url or environ.get("MA_URL", ""),
        token.strip(),
        ca=chosen.ca,
        plain=chosen.allow_plain_http,
        timeout=chosen.timeout,
    )


def _run(chosen: argparse.Namespace, environ: Mapping[str, str]) -> int:
    noun, *rest = chosen.words or [""]
    if noun == "completion":
        completion = Parser(prog="ma completion", description='eval "$(./ma completion bash)"')
        completion.add_argument("shell", choices=["bash"])
        completion.parse_args(rest)
        print(COMPLETION, end="")
        return Exit.DONE
    site = _site(chosen, environ)
    if noun in SPECIAL:
        return SPECIAL[noun](site, rest)
    commands = described(site, noun) if noun else []
    if not commands:
        nouns = ", ".join(sorted({*SPECIAL, *(each["noun"] for each in described(site))}))
        what = f"Unknown noun {noun!r} at {site.base}." if noun else "No noun given."
        raise RemoteError(Exit.USAGE, what, f"Known nouns: {nouns}.")
    options = parser_of(noun, commands).parse_args(rest)
    return _carry_out(site, options.command, options)


# -- one command ---------------------------------------------------------------------------------------------


def _carry_out(site: Site, command: Described, options: argparse.Namespace) -> int:
    asked = asked_of(command, options, sys.stdin.buffer)
    if command["answer"] == "file":
        return _save(site, asked, options.out)
    if command["answer"] == "list":
        return _list(site, asked, options)
    answer = site.asked(asked.method, asked.path, asked.query, asked.body)
    if options.json:
        print(output.as_json(answer))
    elif answer is None:
        print("Done.")
    else:
        print(output.object_as_lines(answer))
    return Exit.DONE


def _list(site: Site, asked: Asked, options: argparse.Namespace) -> int:
    columns = [each for each in (options.columns or "").split(",") if each]
    if options.all_pages:
        rows = list(rows_of(site, asked.path, asked.query))
        print(output.as_json(rows) if options.json else output.rows_as_table(rows, columns))
        return Exit.DONE
    answer = site.asked(asked.method, asked.path, asked.query)
    if options.json:
        print(output.as_json(answer))
        return Exit.DONE
    rows = answer if isinstance(answer, list) else answer["results"]
    if rows:
        print(output.rows_as_table(rows, columns))
    if isinstance(answer, dict) and answer.get("next"):
        print("More results: --all-pages.", file=sys.stderr)
    return Exit.DONE


def _save(site: Site, asked: Asked, out: str | None) -> int:
    if out is None and output.is_terminal(sys.stdout):
        raise RemoteError(Exit.USAGE, "Files are not written to a terminal.", "Use --out FILE or a pipe.")
    if out is None:
        site.saved(asked.path, asked.query, sys.stdout.buffer)
        return Exit.DONE
    part = Path(f"{out}.part")
    try:
        with part.open("wb") as file:
            site.saved(asked.path, asked.query, file)
        part.replace(out)
    except OSError as error:
        raise RemoteError(Exit.USAGE, f"{out} cannot be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)
    return Exit.DONE


# -- settings in a file --------------------------------------------------------------------------------------


def _apply(site: Site, words: Sequence[str], *, plan: bool = False) -> int:
    parser = Parser(prog=f"ma {'plan' if plan else 'apply'}", allow_abbrev=False)
    parser.add_argument(
        "file", metavar="FILE", help="YAML file as printed by `export`; - reads standard input"
    )
    parser.add_argument(
        "--prune", action="store_true", help="delete objects of these pools that the file does not name"
    )
    if not plan:
        parser.add_argument("--dry-run", action="store_true", help="only show changes")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(words)
    dry_run = plan or chosen.dry_run
    raw = read_file(chosen.file, LARGEST_FILE, sys.stdin.buffer)
    body = {"text": _text(chosen.file, raw), "dry_run": dry_run, "prune": chosen.prune}
    try:
        answer = site.asked("POST", MANIFESTS, body=body)
    except RemoteError as problem:
        for each in (problem.answer or {}).get("problems", []):
            print(_named(chosen.file, each), file=sys.stderr)
        raise
    if chosen.json:
        print(output.as_json(answer))
    else:
        _say_changes(answer, dry_run)
    for each in answer["refused"]:
        print(_named(chosen.file, each), file=sys.stderr)
    if answer["refused"]:
        return Exit.REFUSED
    return Exit.CHANGES if dry_run and answer["changes"] else Exit.DONE


def _text(name: str, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RemoteError(Exit.USAGE, f"{name} is not UTF-8 text: {error.reason}.") from None


def _named(file: str, problem: Mapping[str, str]) -> str:
    place = f"{problem['path']}: " if problem["path"] else ""
    return output.printable(f"{'standard input' if file == '-' else file}: {place}{problem['text']}")


def _say_changes(answer: Mapping[str, Any], dry_run: bool) -> None:
    for each in answer["changes"]:
        print(output.printable(each["text"]))
    if answer["withheld"]:
        will = "would not be" if dry_run else "is not"
        names = output.printable(", ".join(answer["withheld"]))
        print(f"{names}: {will} sent to servers: the pool does not allow the agent.")
    count = len(answer["changes"])
    changes = f"{count} change{'s' * (count != 1)}"
    if not count:
        print("Nothing to change.")
    else:
        print(f"{changes} to make; nothing was stored." if dry_run else f"{changes} made.")


def _export(site: Site, words: Sequence[str]) -> int:
    parser = Parser(prog="ma export", allow_abbrev=False)
    parser.add_argument("keys", nargs="*", metavar="KEY", help="only these settings and their dependencies")
    chosen = parser.parse_args(words)
    print(site.asked("GET", MANIFESTS, [("key", chosen.keys)])["text"], end="")
    return Exit.DONE


SPECIAL: dict[str, Callable[[Site, Sequence[str]], int]] = {
    "apply": _apply,
    "plan": partial(_apply, plan=True),
    "export": _export,
}


# -- completion ----------------------------------------------------------------------------------------------


def _complete(words: Sequence[str], environ: Mapping[str, str], local: Iterable[str]) -> int:
    """One candidate a line for the last of `words`. Whatever is wrong offers nothing: somebody only types."""
    last = words[-1] if words else ""
    with suppress(RemoteError, SystemExit, OSError), redirect_stderr(StringIO()):
        with redirect_stdout(StringIO()):
            found = set(_candidates([*words] or [""], environ, local))
        print("\n".join(sorted(each for each in found if each.startswith(last))))
    return Exit.DONE


def _candidates(words: list[str], environ: Mapping[str, str], local: Iterable[str]) -> Iterable[str]:
    *before, last = words
    chosen = _options().parse_args(before)
    told = chosen.words
    here = [*local, "completion"] if not chosen.url else []
    if not told and last.startswith("-"):
        return OPTIONS
    if not (chosen.url or environ.get("MA_URL")):
        return here if not told else ()
    site = _site(chosen, environ)
    if not told:
        with suppress(RemoteError):
            return [*here, *SPECIAL, *(each["noun"] for each in described(site))]
        return here
    commands = described(site, told[0])
    if len(told) == 1:
        return [each["verb"] for each in commands]
    command = next((each for each in commands if each["verb"] == told[1]), None)
    return _words_of(site, command, commands, told, last) if command else ()


def _words_of(
    site: Site, command: Described, commands: Sequence[Described], told: Sequence[str], last: str
) -> Iterable[str]:
    inputs = {f"--{each['name'].replace('_', '-')}": each for each in command["inputs"]}
    before = inputs.get(told[-1])
    if before and before["choices"]:
        return [str(each) for each in before["choices"]]
    if last.startswith("-"):
        return [*(name for name, each in inputs.items() if each["place"] != "path"), "--json"]
    place = next((each["name"] for each in command["inputs"] if each["place"] == "path"), None)
    listing = next((each for each in commands if each["verb"] == "list"), None)
    if place is None or listing is None or len(told) > 2:
        return ()
    rows = site.asked("GET", listing["path"], {"page_size": 100})
    found = rows if isinstance(rows, list) else rows["results"]
    return [name for row in found if (name := str(row.get(place, ""))).isprintable()]
