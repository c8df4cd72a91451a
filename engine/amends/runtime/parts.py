"""The parts of an engine, wired once over a kit. Nothing here has behaviour; the order of the fields is the order in
which the parts rest on each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from amends.runtime.approvals import Approvals
from amends.runtime.asking import Policy
from amends.runtime.book import Book
from amends.runtime.checking import Checks
from amends.runtime.claiming import Claims
from amends.runtime.compensating import Compensator
from amends.runtime.correcting import Corrections
from amends.runtime.driving import Driver
from amends.runtime.escalations import Escalations
from amends.runtime.flights import Flights
from amends.runtime.intending import Intending
from amends.runtime.invoking import Invoker
from amends.runtime.kit import Kit
from amends.runtime.listening import Listener
from amends.runtime.looking import Looker
from amends.runtime.paging import Pager
from amends.runtime.preparing import Preparing
from amends.runtime.reads import Reads
from amends.runtime.releasing import Outbox
from amends.runtime.reopening import Reopener
from amends.runtime.sending import Sending
from amends.runtime.sweeping import Sweeper
from amends.runtime.troubles import Troubles
from amends.runtime.undoing import Undoing


@dataclass(frozen=True)
class Parts:
    """What an engine and its runs share."""

    kit: Kit
    book: Book
    flights: Flights
    looker: Looker
    claims: Claims
    escalations: Escalations
    approvals: Approvals
    sending: Sending
    invoker: Invoker
    sweeper: Sweeper
    listener: Listener


def assemble(kit: Kit) -> Parts:
    """Wire the parts over a kit."""
    book = Book(kit)
    policy = Policy(kit, Flights(kit))
    flights = Flights(kit)
    claims = Claims(kit, book)
    escalations = Escalations(kit, book)
    looker = Looker(kit, book, policy, flights, escalations)
    approvals = Approvals(kit, book, policy, escalations)
    listener = Listener(kit, book, escalations, claims)
    sending = Sending(kit, book, flights, looker, listener)
    preparing = Preparing(kit, flights)
    intending = Intending(kit, book, policy, preparing, approvals)
    invoker = Invoker(
        kit, book, policy, preparing, looker, escalations, sending, claims, intending, Reads(kit, policy, flights)
    )
    outbox = Outbox(kit, book, policy, preparing, sending, approvals, escalations, Checks(kit, flights))
    undoing = Undoing(kit, book, policy, flights, looker, approvals, escalations, sending)
    compensator = Compensator(kit, book, looker, escalations, undoing)
    corrections = Corrections(kit, book, policy, approvals, escalations, sending)
    driver = Driver(kit, book, looker, compensator, undoing, outbox, corrections, approvals, escalations, claims)
    pager, reopener = Pager(kit, book, flights), Reopener(kit, book, escalations)
    return Parts(
        kit=kit,
        book=book,
        flights=flights,
        looker=looker,
        claims=claims,
        escalations=escalations,
        approvals=approvals,
        sending=sending,
        invoker=invoker,
        sweeper=Sweeper(kit, book, claims, driver, pager, reopener, Troubles(kit, book, escalations)),
        listener=listener,
    )
