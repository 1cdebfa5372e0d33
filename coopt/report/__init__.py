"""Answers as words and tables. Shows what a plan says and works nothing out beyond differences and shares."""
