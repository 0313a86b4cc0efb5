"""``python -m mpi_backend run ...`` runs one rank; ``... launch SPEC.json`` starts and supervises ranks."""

from __future__ import annotations

import sys


def main(argv: list[str]) -> int:
    """Run a subcommand and return its exit code. The subcommand ``run`` ends the process itself."""
    if argv[:1] == ["run"]:
        from mpi_backend.launch.heartbeat import Heartbeat  # noqa: PLC0415 - the supervisor needs none of it
        from mpi_backend.launch.same_python import send_other_python  # noqa: PLC0415 - likewise

        if send_other_python(argv[1:]):
            return 1

        heartbeat = Heartbeat()  # before MPI starts, and while the process is small to fork
        from mpi_backend import worker  # noqa: PLC0415 - likewise
        from mpi_backend.launch.exit_process import exit_process  # noqa: PLC0415 - likewise

        sys.meta_path.insert(0, worker.UnusedImportBlocker())
        exit_process(worker.main(argv[1:], heartbeat))
    if argv[:1] == ["launch"]:
        from mpi_backend.launch.__main__ import main as launch  # noqa: PLC0415 - likewise

        return launch(argv[1:])
    sys.stderr.write("usage: python -m mpi_backend run PLAN --in DIR --out DIR | launch SPEC\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
