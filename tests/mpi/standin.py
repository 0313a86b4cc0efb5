"""Replace a rank in tests: send heartbeats and progress, and fail as ``STANDIN`` says after its second step.

Called like an interpreter, ``standin.py -m mpi_backend run PLAN --in IN --out OUT``. ``STANDIN``: ``ends`` normally,
``raises``, is ``killed``, is ``stopped``, ``exits`` without an error, ``holds`` the GIL for long, or is ``endless``.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

from mpi_backend.launch.heartbeat import Heartbeat
from mpi_backend.launch.messages import FileLink

STEPS = 6
STEP_SECONDS = 0.1
BAD_STEP = 2
HOLD_SECONDS = 5


def main() -> int:
    """Run the steps and return the exit code."""
    out = Path(sys.argv[sys.argv.index("--out") + 1])
    rank, ranks = int(os.environ.get("PMI_RANK", "0")), int(os.environ["PARALAGG_MPI_RANKS"])
    behaviour = os.environ.get("STANDIN", "ends")
    heartbeat, files = Heartbeat(), FileLink(out, rank)
    files.begin()
    heartbeat.begin(str(out), rank, None)
    step = 0
    while step < STEPS or behaviour == "endless":
        step += 1
        if rank == 0:
            print("not for the parent", flush=True)  # noqa: T201 - a rank's stdout is read
            print(json.dumps({"event": "progress", "iteration": step, "delta": 1, "total": 2}), flush=True)  # noqa: T201
        time.sleep(STEP_SECONDS)
        if step == BAD_STEP and rank == ranks - 1:
            code = _misbehave(behaviour, out, rank)
            if code:
                return code
    heartbeat.end()
    files.send_end()
    if rank == 0:
        (out / "report.json").write_text("{}")
    return 0


def _misbehave(behaviour: str, out: Path, rank: int) -> int:
    if behaviour == "raises":
        error = {"code": "PARALAGG_LIMIT_REACHED", "message": "after 2 iterations", "place": "r", "hint": "more"}
        (out / f"error-{rank}.json").write_text(json.dumps({**error, "rank": rank, "host": "h", "traceback": None}))
        return 1
    if behaviour == "exits":
        sys.stderr.write("last words\n")
        return 7
    if behaviour == "holds":
        ctypes.PyDLL(None).sleep(HOLD_SECONDS)
    if behaviour in ("killed", "stopped"):
        os.kill(os.getpid(), signal.SIGKILL if behaviour == "killed" else signal.SIGSTOP)
    return 0


if __name__ == "__main__":
    sys.exit(main())
