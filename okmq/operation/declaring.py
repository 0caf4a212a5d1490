"""What the commands of configuration as a file share: a file taken in, a workspace found, refusals as sentences."""

import getpass
import sys
from pathlib import Path

from django.core.management.base import CommandError

from streams import selectors
from streams.access import Actor
from streams.api.declared.applying import Outcome, apply
from streams.api.declared.checking import check
from streams.api.declared.reading import Faulty, read
from streams.errors import Refusal
from streams.log.errors import LogError
from streams.models import DEFAULT_WORKSPACE, Workspace

FAILED = 2


def workspace_of(name: str) -> Workspace:
    """Raises CommandError where there is none."""
    try:
        if not name.isprintable():  # what no database takes, such as a byte that the locale cannot read
            raise Refusal("workspace_not_found", "No workspace is called so.")
        return selectors.workspace_named(name)
    except Refusal:
        raise CommandError(f"There is no workspace {name!r}; make it first.", returncode=FAILED) from None


def file_applied(file: str, *, workspace: str, prune: bool, dry_run: bool) -> tuple[Outcome, Workspace]:
    """Apply a file, ``-`` for standard input, as the person who runs the command.

    Args:
        workspace: which one, whatever the file says; empty for the file's own.

    Raises:
        CommandError: every fault as ``file:line:column: sentence``; nothing was changed.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}", returncode=FAILED) from None
    try:
        declared = check(read(text))
        found = workspace_of(workspace or declared.workspace or DEFAULT_WORKSPACE)
        outcome = apply(declared, found, actor=Actor(_who()), prune=prune, dry_run=dry_run)
    except Faulty as error:
        faults = "\n".join(f"{file}:{fault}" for fault in error.faults)
        raise CommandError(f"Nothing was changed.\n{faults}", returncode=FAILED) from None
    except LogError as error:
        raise CommandError(f"The message store does not answer: {error}", returncode=FAILED) from None
    return outcome, found


def _who() -> str:
    try:
        return f"{getpass.getuser()} (okmq_apply)"
    except (KeyError, OSError):
        return "okmq_apply"
