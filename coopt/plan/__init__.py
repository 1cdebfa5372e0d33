"""Data types of answers. Independent of how they are found."""
