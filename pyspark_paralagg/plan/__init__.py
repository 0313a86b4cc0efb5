"""The physical IR that engines execute: dataclasses, versioned JSON, a printer."""

EXTRAS = "python"
"""The key in a Plan's JSON for data that only ``explain`` and ``report`` read, not the engines."""
