"""The form of an answer. Knows nothing of how it is found."""
