"""Logins: opened, closed, ended from afar; and how many wrong passwords are looked at."""

import contextlib
import ipaddress
from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone

from streams.access import Actor
from streams.errors import Refusal
from streams.models import FailedLogins, Login
from streams.services.events import event_record
from streams.services.open_pages import session_group, tell

FREE_FAILURES = {"account": 5, "address": 50}
"""Wrong passwords in a row that cost nothing: for an account from one address, and from an address for any account."""

FIRST_WAIT = timedelta(seconds=30)
LONGEST_WAIT = timedelta(minutes=15)
FORGOTTEN_AFTER = timedelta(hours=1)


def login_admit(account: str, *, address: str) -> list[str]:
    """Count an attempt, before its password is looked at: of attempts at once none slips by.

    An account is never locked for everybody, or anyone could lock it: what is counted is an account from an address
    (an IPv6 network of 64 bits counts as one), and an address. After ``FREE_FAILURES`` each further attempt
    doubles the wait, up to ``LONGEST_WAIT``; ``login_succeeded`` forgets it, and so does an hour of quiet. An attempt
    that has to wait counts nothing and writes nothing, so that an address leaves a bounded number of rows and events.

    Returns:
        Of ``FREE_FAILURES`` those of which it is the last one, unless it succeeds; for ``login_failed``.

    Raises:
        Refusal: ``rate_limited`` with ``retry_after``, seconds.
    """
    now, subjects = timezone.now(), _subjects(account, address=address)
    # Looked at before anything is written: who has to wait costs a read, and nobody else waits for the database.
    _refuse_blocked(FailedLogins.objects.filter(subject__in=subjects.values()), now=now)
    with transaction.atomic():
        FailedLogins.objects.filter(last_at__lt=now - FORGOTTEN_AFTER).delete()
        held = {kind: _locked(subject, now=now) for kind, subject in subjects.items()}
        _refuse_blocked(held.values(), now=now)  # of attempts at once another may have been the last
        for kind, failed in held.items():
            failed.failures, failed.last_at = failed.failures + 1, now
            beyond = failed.failures - FREE_FAILURES[kind]
            failed.blocked_until = (
                None if beyond < 0 else now + min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(beyond, 10))
            )
            failed.save()
    return [kind for kind, failed in held.items() if failed.failures == FREE_FAILURES[kind]]


@transaction.atomic
def login_failed(account: str, *, address: str, last_of: Iterable[str]) -> None:
    """The password of an attempt was wrong; an event, where that was the last free one (of ``last_of``)."""
    for kind in last_of:
        event_record(
            None,
            kind="session.refused",
            actor=Actor("nobody", address),  # a name that was only claimed is no actor
            after={"account": account.replace("\x00", "")[:100]},
            summary=f"{FREE_FAILURES[kind]:,} logins failed from {address or 'an unknown address'}; further attempts "
            "have to wait.",
        )


def login_succeeded(account: str, *, address: str) -> None:
    """Forget the failures of an account from an address; those of the address itself count one less."""
    subjects = _subjects(account, address=address)
    FailedLogins.objects.filter(subject=subjects["account"]).delete()
    with transaction.atomic():
        held = FailedLogins.objects.select_for_update().filter(subject=subjects["address"]).first()
        if held is not None:
            held.failures, held.blocked_until = max(0, held.failures - 1), None
            held.save()


@transaction.atomic
def login_opened(user: AbstractBaseUser, *, session_key: str, actor: Actor, agent: str = "") -> None:
    """Keep a login that has just been opened; forgets those whose session is gone."""
    there = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    Login.objects.filter(user_id=user.pk).exclude(session_key__in=there).delete()
    Login.objects.create(
        user_id=user.pk, session_key=session_key, address=actor.address[:64], agent=agent[:200]
    )
    event_record(None, kind="session.opened", actor=actor, summary=f"{actor.name} logged in.")


@transaction.atomic
def login_closed(session_key: str, *, actor: Actor) -> None:
    """A person has logged out; sockets of that login close."""
    Login.objects.filter(session_key=session_key).delete()
    event_record(None, kind="session.closed", actor=actor, summary=f"{actor.name} logged out.")
    tell({session_group(session_key): "live.end"})


@transaction.atomic
def logins_end(user: AbstractBaseUser, *, but: str = "", login_id: int | None = None) -> int:
    """End a person's logins in every browser, or one of them; how many.

    Args:
        but: the session key of a login that stays.
    """
    found = Login.objects.filter(user_id=user.pk).exclude(session_key=but)
    if login_id is not None:
        found = found.filter(pk=login_id)
    session_keys = list(found.values_list("session_key", flat=True))
    Session.objects.filter(session_key__in=session_keys).delete()
    found.delete()
    tell({session_group(key): "live.end" for key in session_keys})
    return len(session_keys)


def _locked(subject: str, *, now: datetime) -> FailedLogins:
    FailedLogins.objects.get_or_create(subject=subject, defaults={"last_at": now})
    return FailedLogins.objects.select_for_update().get(subject=subject)


def _refuse_blocked(held: Iterable[FailedLogins], *, now: datetime) -> None:
    """Raises Refusal ``rate_limited`` where one of them has to wait."""
    ends = [
        each.blocked_until for each in held if each.blocked_until is not None and each.blocked_until > now
    ]
    if ends:
        seconds = max(1, round((max(ends) - now).total_seconds()))
        raise Refusal(
            "rate_limited",
            f"Too many wrong passwords; try again in {seconds} seconds.",
            headers={"Retry-After": str(seconds)},
            retry_after=seconds,
        )


def _subjects(account: str, *, address: str) -> dict[str, str]:
    network = address
    with contextlib.suppress(ValueError):  # whatever stands before us may send no address at all
        bits = 64 if ipaddress.ip_address(address).version == 6 else 32
        network = str(ipaddress.ip_network(f"{address}/{bits}", strict=False))
    name = account.strip().casefold()[:300]
    return {
        kind: sha256(f"{kind}\n{text}".encode("utf-8", "replace")).hexdigest()
        for kind, text in (("account", f"{network}\n{name}"), ("address", network))
    }
