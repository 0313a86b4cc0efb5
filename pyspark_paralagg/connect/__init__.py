"""Analyse the steps of a Spark Connect session in Python: the plan that the client has built -> Step JSON."""
