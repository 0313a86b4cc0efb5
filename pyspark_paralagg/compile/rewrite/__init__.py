"""Passes from Program to Program, and the functions that they share."""
