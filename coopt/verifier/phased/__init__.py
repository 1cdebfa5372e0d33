"""Doubt what a plan of several phases claims."""
