"""Compile Datalog text: ``parse`` -> ``resolve`` -> ``lower`` -> a Program. ``api/datalog.py`` runs it on Spark."""
