"""Start the ranks of a run, supervise them, and end them. Needs only the standard library."""
