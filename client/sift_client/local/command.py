"""`sift local`: runs the template's stack on this machine until it is told to stop."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from sift_client.connection import forget_connection, save_connection
from sift_client.local.access import describe_access
from sift_client.local.document import find_template
from sift_client.local.errors import TemplateError
from sift_client.local.sam_files import built_template, write_sam_files
from sift_client.local.stack import LocalStack
from sift_client.local.webserver import LOOPBACK

DEFAULT_PORT = 8700


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options to a parser."""
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port of the API; 0 takes a free one")
    parser.add_argument(
        "--host", default=LOOPBACK, metavar="ADDRESS", help="listen at this address alone (default: 127.0.0.1)"
    )
    parser.add_argument("--site", action="store_true", help="also serve the sample web site")
    parser.add_argument(
        "--template", type=Path, help="the SAM template to run (default: template.yaml, here or in the checkout)"
    )
    parser.add_argument("--state", type=Path, help="file to go on from, and to save to at the end")
    parser.add_argument("--log-dir", type=Path, help="folder for the functions' logs; a new temporary one by default")
    parser.add_argument(
        "--parameter", action="append", default=[], metavar="NAME=VALUE", help="override a parameter of the template"
    )
    parser.add_argument(
        "--sam", type=Path, metavar="FOLDER", help="write there what `sam local` needs to run functions on this stack"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the stack; the first SIGINT or SIGTERM drains it, a second ends it at once. Gives the exit status."""
    parameters = {}
    for setting in args.parameter:
        name, separator, value = setting.partition("=")
        if not separator:
            print(f"sift local: --parameter takes NAME=VALUE, not {setting!r}", file=sys.stderr)
            return 2
        parameters[name] = value
    stop = threading.Event()
    stack: LocalStack | None = None

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set() and stack is not None:
            stack.hurry()
        stop.set()

    previous = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        template = args.template or find_template()
        stack = LocalStack(template, args.port, args.site, args.state, parameters, args.log_dir, args.host)
        with stack, contextlib.ExitStack() as found:
            if access := describe_access(stack):
                connection, table = access
                save_connection(connection, table=table)
                found.callback(forget_connection, connection)
            if args.sam:
                write_sam_files(args.sam, built_template(template), stack.variables())
            _introduce(stack)
            stop.wait()
            print("draining: what runs may end; Ctrl-C again ends it at once", file=sys.stderr, flush=True)
            stack.drain()
            if args.state:
                print(f"state saved in {args.state}", file=sys.stderr, flush=True)
    except (TemplateError, OSError) as error:
        print(f"sift local: {error}", file=sys.stderr)
        return 1
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return 0


def _introduce(stack: LocalStack) -> None:
    print(f"api   {stack.url}")
    if stack.key:
        print(f"key   {stack.key}")
    if stack.site is not None:
        print(f"site  {stack.site.url}")
    print(f"logs  {stack.log_dir}", flush=True)
    if stack.inert:
        notes = stack.log_dir / "without-effect.txt"
        notes.write_text("\n".join(stack.inert) + "\n", encoding="utf-8")
        print(f"note: {len(stack.inert)} settings of the template have no effect here, see {notes}", file=sys.stderr)
    if stack.unknown:
        print(f"warning: not understood and left out: {', '.join(stack.unknown)}", file=sys.stderr)
    sys.stderr.flush()
