"""Define the version of this package. The shim's Scala code has the same one; a test compares both."""

from __future__ import annotations

VERSION = "0.1.0"
