"""Typed flat rules -> Program."""
