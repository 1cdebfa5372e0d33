"""What ties the parts of a plan together, each in a file of its own."""
