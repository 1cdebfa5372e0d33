"""Check what ties the parts of a plan together; every coupling has a file."""
