"""Answers as words and tables. Shows what a plan says and works nothing out beyond differences and
shares.
"""

from coopt._interpreter import answer_calls

answer_calls(__name__)
