"""The commands that ask the service: fetch, and those of jobs."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sift_client.client import Sift
from sift_client.errors import SiftClientError
from sift_client.files import write_file
from sift_client.follow import Followed, Follower
from sift_client.progress import open_progress
from sift_client.shapes import Job, Target
from sift_client.tables import clean, describe_job, print_table
from sift_client.target_lists import read_targets

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_PARTIAL = 3
EXIT_TROUBLE = 4
EXIT_INTERRUPTED = 130

_EXITS = {"done": EXIT_DONE, "partial": EXIT_PARTIAL, "failed": EXIT_FAILED, "cancelled": EXIT_FAILED}


class Usage(SiftClientError):
    """The command line asks for something that cannot be."""


def run_run(args: argparse.Namespace) -> int:
    """Submit, follow to the end, save, show."""
    targets = gather_targets(args)
    with _connect(args) as client:
        return follow_and_show(client, _submit(client, targets, args), args)


def run_submit(args: argparse.Namespace) -> int:
    """Submit and say how to go on."""
    targets = gather_targets(args)
    with _connect(args) as client:
        job = _submit(client, targets, args)
    if args.json:
        _print_json(job)
    else:
        print(job["id"])
        again = " (the same work as before)" if job.get("reused") else ""
        print(f"{job['counts']['total']} targets{again}; follow with: sift wait {job['id']}", file=sys.stderr)
    return EXIT_DONE


def run_fetch(args: argparse.Namespace) -> int:
    """One target now: its content on standard output, or with --json the whole answer."""
    with _connect(args) as client:
        fetched = client.fetch(args.address, gather_options(args))
        if args.json:
            _print_json(fetched)
            return EXIT_DONE
        body = client.read(fetched)
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(body)
        sys.stdout.flush()
        return EXIT_DONE
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Usage(f"{len(body)} bytes that are no text", "Send them to a file: sift fetch ... > FILE") from None
    print("\n".join(clean(line) for line in text.replace("\t", "    ").splitlines()))
    return EXIT_DONE


def run_status(args: argparse.Namespace) -> int:
    """One look, or with --wait the last one; only then the exit code is about the job."""
    with _connect(args) as client:
        try:
            job = client.wait(args.job) if args.wait else client.get(args.job)
        except KeyboardInterrupt:
            return say_how_to_go_on(args.job)
    if args.json:
        _print_json(job)
    else:
        print(describe_job(job))
        for name in ("created_at", "started_at", "ended_at", "expires_at", "error"):
            value: Any = job.get(name)
            if value:
                print(f"  {name.removesuffix('_at')}: {value}")
    return _EXITS[job["status"]] if args.wait else EXIT_DONE


def run_wait(args: argparse.Namespace) -> int:
    """Follow a job that was submitted before."""
    with _connect(args) as client:
        return follow_and_show(client, client.get(args.job), args)


def run_results(args: argparse.Namespace) -> int:
    """What there is so far: the table, or with --json one JSON line per target with its content; with --file the
    results file of a job that has ended."""
    with _connect(args) as client:
        if args.file:
            _save(Path(args.file), client.results(args.job))
        elif args.json:
            for slot in client.targets(args.job, content=True):
                print(json.dumps(slot, ensure_ascii=False))
        else:
            print_table(client.targets(args.job), sys.stdout)
    return EXIT_DONE


def run_change(args: argparse.Namespace) -> int:
    """Cancel, pause, resume or retry, as `args.change` says; shows the job as it is then."""
    with _connect(args) as client:
        changes: dict[str, Callable[[str], Job]] = {
            "cancel": client.cancel,
            "pause": client.pause,
            "resume": client.resume,
            "retry": client.retry,
        }
        job = changes[args.change](args.job)
    print(describe_job(job))
    return EXIT_DONE


def run_delete(args: argparse.Namespace) -> int:
    """Delete."""
    with _connect(args) as client:
        client.delete(args.job)
    print(f"{args.job}: deleted")
    return EXIT_DONE


def run_jobs(args: argparse.Namespace) -> int:
    """List the newest jobs; with --tenant, --actor or --all each with its caller."""
    others = bool(args.tenant or args.actor or args.everybody)
    with _connect(args) as client:
        found = client.jobs(args.status, tenant=args.tenant, actor=args.actor, everybody=args.everybody)
        for job in itertools.islice(found, args.limit):
            whose = clean(f"{job['tenant']}/{job['actor']}  ") if others else ""
            print(f"{job['created_at']}  {whose}{describe_job(job)}")
    return EXIT_DONE


def gather_targets(args: argparse.Namespace) -> list[str | Target]:
    """The addresses of the command line, then those of the file. Raises Usage when there are none."""
    targets: list[str | Target] = [*args.urls]
    if args.targets:
        try:
            targets += read_targets(args.targets)
        except SiftClientError as error:
            raise Usage(error.detail, error.hint) from None
    if not targets:
        raise Usage("no targets", "Give addresses, or a file of them with --targets FILE (- is standard input).")
    return targets


def gather_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options for all targets that have none of their own."""
    names = ("mode", "pages", "grep", "jq", "question", "context", "recover", "robots")
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def follow_and_show(client: Sift, job: Job, args: argparse.Namespace) -> int:
    """Follow to the end, print the table and where the files are; gives the exit code."""
    followed = follow(client, job, Path(args.out), as_json=args.json)
    if followed is None:
        return say_how_to_go_on(job["id"])
    if args.json:
        _print_followed(followed)
    else:
        show(followed)
    return EXIT_TROUBLE if followed.unsaved else _EXITS[followed.job["status"]]


def follow(client: Sift, job: Job, out: Path, *, as_json: bool = False) -> Followed | None:
    """Follow with progress on standard error; None when the user pressed Ctrl-C."""
    progress = open_progress(sys.stderr, silent=as_json)
    try:
        return Follower(client, job, out, progress).follow()
    except KeyboardInterrupt:
        return None
    except OSError as error:
        raise SiftClientError(
            f"{error.filename or out} cannot be written: {error.strerror}",
            f"The job goes on. When there is room: sift wait {job['id']} --out DIR",
        ) from None
    except SiftClientError as error:
        error.hint = f"{error.hint} The job goes on: sift wait {job['id']}".strip()
        raise
    finally:
        progress.close()


def show(followed: Followed) -> None:
    """The table, the job's end and where the files are."""
    print_table((followed.slots[index] for index in sorted(followed.slots)), sys.stdout)
    print(describe_job(followed.job))
    errors = [slot.get("error") for slot in followed.slots.values()]
    for hint in sorted({error["hint"] for error in errors if error and error.get("hint")}):
        print(f"  hint: {clean(hint)}")
    if followed.files:
        folder = next(iter(followed.files.values())).parent
        print(f"{len(followed.files)} files in {folder}/")
    for index, error in sorted(followed.unsaved.items()):
        print(f"{index:04d} could not be saved: {error.code}: {error.detail}", file=sys.stderr)


def say_how_to_go_on(job_id: str) -> int:
    """After Ctrl-C: the job does not depend on whoever looks at it."""
    print(f"\nThe job goes on without you. To see it through: sift wait {job_id}", file=sys.stderr)
    print(f"To stop it: sift cancel {job_id}", file=sys.stderr)
    return EXIT_INTERRUPTED


def _save(path: Path, body: bytes) -> None:
    try:
        write_file(path, body)
    except OSError as error:
        raise SiftClientError(f"{path} cannot be written: {error.strerror}", "Name another file.") from None
    print(f"{path}: {len(body)} bytes; read it with: zcat {path} | jq", file=sys.stderr)


def _connect(args: argparse.Namespace) -> Sift:
    return Sift(args.url, args.key)


def _submit(client: Sift, targets: list[str | Target], args: argparse.Namespace) -> Job:
    return client.submit(targets, options=gather_options(args), window=args.window, fresh=args.fresh)


def _print_followed(followed: Followed) -> None:
    targets = [
        {**slot, "file": str(followed.files[index]) if index in followed.files else None}
        for index, slot in sorted(followed.slots.items())
    ]
    _print_json({"job": followed.job, "targets": targets})


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))
