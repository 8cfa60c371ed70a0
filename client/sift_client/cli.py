"""The `sift` command.

Exit codes: 0 done, 1 the job failed or was cancelled, or the target of `fetch` failed, 2 wrong usage (found here, or by
the service in what it was asked), 3 partial (some targets failed), 4 the service could not be asked, would not do it,
or content could not be saved, 130 interrupted with Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, get_args

from sift_client import commands, keys, teardown
from sift_client.commands import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_TROUBLE, EXIT_USAGE
from sift_client.connection import STATE_FILE
from sift_client.errors import SiftApiError, SiftClientError
from sift_client.shapes import JobStatus

if TYPE_CHECKING:
    _Parser = argparse.ArgumentParser
    # Generic only to the type checker.
    _Subparsers = argparse._SubParsersAction[_Parser]

MODES = ("auto", "article", "page", "text", "raw", "links", "meta")

#: The service says with these that the request itself is wrong, and would be at any time and for anybody: a URL, an
#: option, a number out of its range, too many targets, too large a body.
WRONG_REQUEST = frozenset({400, 413, 422})

_CHANGES = {
    "cancel": "cancel a job",
    "pause": "pause a job: nothing new starts",
    "resume": "go on with a paused job",
    "retry": "run what failed or never ran as a new job",
}

_EPILOG = """\
SIFT_URL and SIFT_KEY say which service to use; without them, the local stack running in this folder is used.
exit codes: 0 done, 1 failed or cancelled, 2 wrong usage, 3 partial, 4 service or disk trouble, 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; expected errors become one or two lines on standard error."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    args = make_parser(with_local=arguments[:1] == ["local"]).parse_args(arguments)
    try:
        return int(args.run(args))
    except commands.Usage as error:
        _explain(error)
        return EXIT_USAGE
    except SiftClientError as error:
        _explain(error)
        if isinstance(error, SiftApiError) and error.of_target:
            return EXIT_FAILED
        asked_wrongly = isinstance(error, SiftApiError) and error.status in WRONG_REQUEST
        return EXIT_USAGE if asked_wrongly else EXIT_TROUBLE
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (head, say) has enough; Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_TROUBLE


def make_parser(*, with_local: bool = True) -> argparse.ArgumentParser:
    """The parser of all commands; `with_local` also loads the local stack, which takes a moment."""
    parser = argparse.ArgumentParser(
        prog="sift",
        description="Fetch batches of web pages and documents as clean content.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)

    run = _add(subparsers, "run", commands.run_run, "submit addresses, follow the job and save its content")
    _add_submission(run)
    _add_out(run)

    submit = _add(subparsers, "submit", commands.run_submit, "submit addresses and print the job's id")
    _add_submission(submit)

    fetch = _add(subparsers, "fetch", commands.run_fetch, "fetch one address now and print its content")
    fetch.add_argument("address", metavar="URL", help="the address to fetch")
    _add_options(fetch)

    status = _add(subparsers, "status", commands.run_status, "show a job's status")
    _add_job(status)
    status.add_argument("--wait", action="store_true", help="wait until the job has ended")

    wait = _add(subparsers, "wait", commands.run_wait, "follow a job to its end and save its content")
    _add_job(wait)
    _add_out(wait)

    results = _add(subparsers, "results", commands.run_results, "show a job's targets as they are now")
    _add_job(results)
    results.add_argument(
        "--file", metavar="FILE", help="save all outcomes of an ended job here, as gzip JSON Lines (.jsonl.gz)"
    )

    jobs = _add(subparsers, "jobs", commands.run_jobs, "list jobs, newest first: yours, or as an admin others'")
    jobs.add_argument("--status", choices=get_args(JobStatus), help="only jobs of this status")
    jobs.add_argument("--tenant", help="for admins: the jobs of this tenant")
    jobs.add_argument("--actor", help="for admins: the jobs of this actor of the tenant")
    jobs.add_argument("--all", dest="everybody", action="store_true", help="for admins: everybody's jobs")
    jobs.add_argument("--limit", type=_positive, default=20, metavar="N", help="at most so many (default: 20)")

    for name, text in _CHANGES.items():
        change = _add(subparsers, name, commands.run_change, text)
        change.set_defaults(change=name)
        _add_job(change)

    delete = _add(subparsers, "delete", commands.run_delete, "forget an ended job and all that it stored")
    _add_job(delete)

    keys.add_arguments(subparsers.add_parser("keys", help="make, list and revoke API keys, as their operator"))

    removal = subparsers.add_parser("teardown", help="delete a deployed stack and all that it stored")
    teardown.add_arguments(removal)
    removal.set_defaults(run=teardown.run_teardown)

    local = subparsers.add_parser("local", help="run the whole service on this machine")
    if with_local:
        from sift_client.local import command

        command.add_arguments(local)
        # What `sift demo` left behind when it was interrupted is what a local stack in this folder goes on with.
        local.set_defaults(run=command.run, state=STATE_FILE)

    demo = subparsers.add_parser("demo", help="run a local stack and fetch its sample site, or the addresses given")
    demo.add_argument("urls", nargs="*", metavar="URL", help="fetch these instead of the sample batch")
    demo.add_argument("--port", type=int, default=0, help="port of the API on 127.0.0.1 (default: a free one)")
    _add_options(demo)
    _add_out(demo)
    demo.set_defaults(run=_run_demo, json=False)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def _run_demo(args: argparse.Namespace) -> int:
    from sift_client.demo import run_demo

    return run_demo(args)


def _add(subparsers: _Subparsers, name: str, run: Callable[[argparse.Namespace], int], text: str) -> _Parser:
    parser = subparsers.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("--url", help="the service's address (default: SIFT_URL)")
    parser.add_argument("--key", help="the key (default: SIFT_KEY, which other users of the machine cannot see)")
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")
    parser.set_defaults(run=run)
    return parser


def _add_submission(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("urls", nargs="*", metavar="URL", help="an address to fetch")
    parser.add_argument(
        "--targets", metavar="FILE", help="more targets, an address or JSON object per line; - is stdin"
    )
    _add_options(parser)
    parser.add_argument("--window", type=int, help="how many targets may be out at once (1 to 32)")
    parser.add_argument("--fresh", action="store_true", help="fetch again even if the same work was done before")


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mode", choices=MODES, help="what to make of each document (default: auto)")
    parser.add_argument("--pages", metavar="P", help="pages of a PDF: 1-3,7,12- or -1 for the last")
    parser.add_argument("--grep", metavar="PATTERN", help="only lines that match this RE2 pattern, with their numbers")
    parser.add_argument("--jq", metavar="PROGRAM", help="what this jq program makes of a JSON document")
    parser.add_argument("--question", metavar="TEXT", help="only the passages that answer this best")
    parser.add_argument(
        "--context", type=int, metavar="N", help="lines around each match, or passages around each answer"
    )
    parser.add_argument(
        "--robots", action=argparse.BooleanOptionalAction, default=None, help="heed the site's robots.txt, or do not"
    )
    parser.add_argument(
        "--recover", action="store_true", default=None, help="read the newest archived copy of a page that is gone"
    )


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", default="out", help="write content to DIR/JOB (default: out)")


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="the job's id")


def _explain(error: SiftClientError) -> None:
    code = f"{error.code}: " if isinstance(error, SiftApiError) else ""
    print(f"sift: {code}{error.detail}", file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)
    if isinstance(error, SiftApiError):
        if error.retry_after is not None:
            print(f"retry after: {error.retry_after:.0f} s", file=sys.stderr)
        if error.request_id and error.status >= 500:
            print(f"request: {error.request_id}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
