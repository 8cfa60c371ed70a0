"""`sift demo`: a local stack and one batch on it, in one process, from nothing to files."""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
from pathlib import Path
from types import FrameType

from sift_client.client import Sift
from sift_client.commands import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_TROUBLE,
    follow,
    follow_and_show,
    gather_options,
    show,
)
from sift_client.connection import LOG_FOLDER, STATE_FILE, Connection, forget_connection, save_connection
from sift_client.errors import SiftClientError
from sift_client.follow import Followed
from sift_client.local import LocalStack, TemplateError
from sift_client.local.access import describe_access, make_key
from sift_client.local.document import find_template
from sift_client.samples import SAMPLES, find_surprises, make_targets
from sift_client.shapes import Job


def run_demo(args: argparse.Namespace) -> int:
    """Fetch the sample batch, or the addresses given; the exit code says whether all ended as it must."""
    # A supervisor's SIGTERM drains just as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print("starting a local stack ...", file=sys.stderr, flush=True)
    try:
        stack = LocalStack(
            find_template(), args.port, site=True, state=STATE_FILE, log_dir=LOG_FOLDER, make_key=make_key
        )
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (TemplateError, OSError) as error:
        raise SiftClientError(
            f"the local stack did not start: {error}",
            f"If {STATE_FILE} is of another version of sift, remove it.",
        ) from None
    with stack:
        access = describe_access(stack)
        if access is None:
            raise SiftClientError("the local stack has no key", "Does template.yaml still have its JobsTable?")
        connection, table = access
        save_connection(connection, table=table)
        try:
            return _fetch(stack, connection, args)
        finally:
            forget_connection(connection)


def _fetch(stack: LocalStack, connection: Connection, args: argparse.Namespace) -> int:
    job: Job | None = None
    print(f"api {stack.url}, site {stack.site.url}, logs in {stack.log_dir}", file=sys.stderr, flush=True)
    with Sift(connection.url, connection.key) as client:
        try:
            if args.urls:
                # Whoever names addresses wants them fetched now, not an earlier job's answer.
                job = client.submit(args.urls, options=gather_options(args), fresh=True)
                code = follow_and_show(client, job, args)
            else:
                job = client.submit(make_targets(stack.site.url, secrets.token_hex(4)))
                code = _show_samples(follow(client, job, Path(args.out)))
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
    _drain(stack, quiet=code != EXIT_INTERRUPTED)
    if code == EXIT_INTERRUPTED and job is not None:
        print(f"State saved in {STATE_FILE}. To go on: sift local --site", file=sys.stderr)
        print(f"and in a second terminal: sift wait {job['id']}", file=sys.stderr)
    return code


def _show_samples(followed: Followed | None) -> int:
    if followed is None:
        return EXIT_INTERRUPTED
    show(followed)
    contents = {index: path.read_text(encoding="utf-8", errors="replace") for index, path in followed.files.items()}
    surprises = find_surprises(followed.slots, contents)
    for surprise in surprises:
        print(f"unexpected: {surprise}", file=sys.stderr)
    if followed.unsaved:
        return EXIT_TROUBLE
    if not surprises:
        print(f"All {len(SAMPLES)} targets ended as the sample batch says they must (the 404 is one of them).")
    return EXIT_FAILED if surprises else EXIT_DONE


def _drain(stack: LocalStack, *, quiet: bool) -> None:
    """Nothing new starts, what runs may end, the state is saved; Ctrl-C now ends what runs at once."""
    if not quiet:
        print("\ndraining: what runs may end; Ctrl-C again ends it at once", file=sys.stderr, flush=True)

    def hurry(_number: int, _frame: FrameType | None) -> None:
        stack.hurry()

    previous = {number: signal.signal(number, hurry) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        stack.drain()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
