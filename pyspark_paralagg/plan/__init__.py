"""Physical IR: what an engine does. Dataclasses, JSON with a schema version, a printer."""
