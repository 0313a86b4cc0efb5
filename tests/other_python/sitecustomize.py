"""Make a rank's Python another minor, for ``tests/test_offload.py``; Python imports it at its start."""

import sys

sys.version_info = (3, 99, *sys.version_info[2:])  # type: ignore[assignment]
