"""The numbers of rows that ranks tell each other: in the order in which these will come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.relation_part import Part


def number_ghosts(part: Part, targets: Iterable[Array], comm: Comm) -> None:
    """Tells the owner of each ghost its key, and learns its id there. Collective.

    Ghosts are numbered by their owners and their ids there, so that messages are written and read from the front to
    the back; ``targets`` of rules (complements of ghosts) follow.
    """
    count = len(part.ghosts)
    owners = part.ghost_owner[:count]
    order = np.argsort(owners, kind="stable")
    ends = np.cumsum(np.bincount(owners, minlength=comm.size))[:-1]
    keys = part.ghosts.keys[:count][order]
    questions = comm.exchange([np.ascontiguousarray(q).ravel() for q in np.split(keys, ends)])
    width = part.shape.key_words
    answers = [
        part.keys.add(q, count=len(q) // width).astype(np.int64) if width else np.zeros(0, np.int64) for q in questions
    ]
    replies = comm.exchange(answers)
    part.grow_ghosts()
    if not width:
        return
    remote = np.concatenate(replies)
    sorting = np.argsort(owners[order].astype(np.int64) << 32 | remote)
    part.ghost_owner[:count] = owners[order[sorting]]
    part.ghost_remote[:count] = remote[sorting]
    places = part.ghosts.reorder(order[sorting])
    for of in targets:
        messages.renumber_ghosts(of, places)


def number_mirror(own: Part, mirror: Part, comm: Comm) -> tuple[Array, list[Array]]:
    """Numbers rows of the mirror by their owners and their ids there. Collective.

    The new numbers by old ones; and for each rank the numbers of its rows by their ids there, -1: not mirrored.
    """
    width = own.shape.key_words
    mine = np.ascontiguousarray(own.keys.keys[: len(own.keys)]).ravel()
    theirs = comm.exchange([mine] * comm.size)
    found = [mirror.keys.find(k, count=len(k) // width) for k in theirs]
    first = np.concatenate([f[f >= 0] for f in found])
    others = np.ones(len(mirror.keys), np.bool_)
    others[first] = False
    places = mirror.keys.reorder(np.concatenate([first, np.flatnonzero(others).astype(np.int32)]))
    by_old = np.append(places, np.int32(-1))  # what was not found, -1, reads the last place
    return places, [by_old[f] for f in found]
