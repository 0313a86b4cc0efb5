"""Define the version of this package, which the shim's Scala code repeats, and the Sparks that it supports."""

from __future__ import annotations

VERSION = "0.1.0"
SUPPORTED_MINORS = ("4.1", "4.2")
PYSPARK = "pyspark>=4.1,<4.3"
"""What pip has to install, as ``pyproject.toml`` says it; a test compares both."""
