"""Passes from Program to Program, and what they share."""
