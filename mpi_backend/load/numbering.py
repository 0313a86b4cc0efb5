"""Number ghosts and mirrored rows in the order in which messages bring them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.relation_part import RelationPart


def number_ghosts(part: RelationPart, targets: Iterable[Array], comm: Comm) -> None:
    """Look up the id of each ghost at its owner, and renumber ghosts and ``targets``. Collective.

    Ghosts are sorted by owner, then by id at the owner, so that messages are written and read sequentially. ``targets``
    are the targets of rules, in which a ghost stands as its complement.
    """
    count = len(part.ghosts)
    owners = part.ghost_owner[:count]
    order = np.argsort(owners, kind="stable")
    ends = np.cumsum(np.bincount(owners, minlength=comm.size))[:-1]
    keys = part.ghosts.keys[:count][order]
    requests = comm.exchange([np.ascontiguousarray(k).ravel() for k in np.split(keys, ends)])
    width = part.shape.key_words
    ids = [
        part.keys.add(k, count=len(k) // width).astype(np.int64) if width else np.zeros(0, np.int64) for k in requests
    ]
    replies = comm.exchange(ids)
    part.grow_ghosts()
    if not width:
        return
    remote = np.concatenate(replies)
    sorting = np.argsort(owners[order].astype(np.int64) << 32 | remote)
    part.ghost_owner[:count] = owners[order[sorting]]
    part.ghost_remote[:count] = remote[sorting]
    places = part.ghosts.reorder(order[sorting])
    for target in targets:
        messages.renumber_ghosts(target, places)


def number_mirror(part: RelationPart, mirror: RelationPart, comm: Comm) -> tuple[Array, list[Array]]:
    """Renumber the rows of the mirror by owner, then by id at the owner. Collective.

    Return the new number of each old number, and for each rank the numbers of its rows by id, or -1 if a row has no
    mirror here.
    """
    width = part.shape.key_words
    own_keys = np.ascontiguousarray(part.keys.keys[: len(part.keys)]).ravel()
    all_keys = comm.exchange([own_keys] * comm.size)
    numbers = [mirror.keys.find(k, count=len(k) // width) for k in all_keys]
    first = np.concatenate([n[n >= 0] for n in numbers])
    others = np.ones(len(mirror.keys), np.bool_)
    others[first] = False
    places = mirror.keys.reorder(np.concatenate([first, np.flatnonzero(others).astype(np.int32)]))
    by_old = np.append(places, np.int32(-1))  # -1, a row without a mirror, reads the last place
    return places, [by_old[n] for n in numbers]
