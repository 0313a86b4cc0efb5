"""Datalog text: a second way in. ``parse`` -> ``resolve`` -> a Program like any other; ``api`` runs it on Spark."""
