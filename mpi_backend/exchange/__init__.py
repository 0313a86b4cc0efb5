"""Moves rows and copies of relations between ranks."""
