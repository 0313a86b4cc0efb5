"""Syntax tree -> flat rules over relations of known shape."""
