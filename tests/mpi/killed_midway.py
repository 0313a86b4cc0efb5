"""Run a rank that is killed in the middle of an exchange, as rank 1, while the others wait for it.

Called like an interpreter, ``killed_midway.py -m mpi_backend run …``. ``KILLED_IN``: before it sends rows whose
sub-bucket has moved (``move``), or before a further early exchange of an iteration (``early``). It then writes the
file ``KILLED_FILE``.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop.roll_over import RollOver
    from mpi_backend.state.loop_state import LoopState

KILLED_RANK = 1


def _kill(rank: int) -> None:
    if rank == KILLED_RANK:
        Path(os.environ["KILLED_FILE"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)


def _kill_in_a_move() -> None:
    from mpi_backend.exchange import moves  # noqa: PLC0415 - a rank loads it after its heartbeat

    send = moves._send

    def killed(loop: LoopState, table: Array, ranks: Array) -> Array:
        _kill(loop.comm.rank)
        return send(loop, table, ranks)

    moves._send = killed


def _kill_in_an_early_exchange() -> None:
    from mpi_backend.loop import roll_over  # noqa: PLC0415 - likewise

    check = roll_over.RollOver._check

    def killed(exchange: RollOver) -> None:
        if exchange.early > 1:
            _kill(exchange._loop.comm.rank)
        check(exchange)

    roll_over.RollOver._check = killed  # type: ignore[method-assign]


if __name__ == "__main__":
    from mpi_backend.__main__ import main

    {"move": _kill_in_a_move, "early": _kill_in_an_early_exchange}[os.environ["KILLED_IN"]]()
    sys.exit(main(sys.argv[3:]))
