"""Ask the client process of ``client.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
MARK = "paralagg reply "


class FailedError(AssertionError):
    """A call that raised in the client: its text, class and code."""

    def __init__(self, reply: dict[str, Any]) -> None:
        super().__init__(reply["error"])
        self.text, self.kind, self.code = reply["text"], reply["kind"], reply["code"]


class Client:
    """The process of ``client.py``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, call: str, *args: Any) -> Any:  # noqa: ANN401 - JSON values
        """Return the value of a function of ``asked.py``; raise ``FailedError`` if it raises."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"call": call, "args": args}) + "\n")
        self._process.stdin.flush()
        return self.reply()

    def reply(self) -> Any:  # noqa: ANN401 - a JSON value
        assert self._process.stdout is not None
        lines = []
        for line in self._process.stdout:
            if line.startswith(MARK):
                reply = json.loads(line.removeprefix(MARK))
                if "error" in reply:
                    raise FailedError(reply)
                return reply["value"]
            lines.append(line)
        raise AssertionError("the client ended: " + "".join(lines[-40:]))


@contextmanager
def client_of(address: str) -> Iterator[Client]:
    command = [sys.executable, str(HERE / "client.py"), address]
    with subprocess.Popen(  # noqa: S603 - the client of these tests
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        client = Client(process)
        client.reply()
        try:
            yield client
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
