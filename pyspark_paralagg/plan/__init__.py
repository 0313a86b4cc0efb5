"""Physical IR: what an engine does. Dataclasses, JSON with a schema version, a printer."""

EXTRAS = "python"
"""The key of a Plan's JSON for what travels with it and no engine reads: ``explain`` and ``report`` do."""
