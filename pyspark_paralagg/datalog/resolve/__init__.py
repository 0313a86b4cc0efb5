"""Resolve a syntax tree into flat rules over relations of known shape."""
