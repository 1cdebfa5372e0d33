"""Who sends how much to whom in an iteration, and over which part of the network."""

from coopt._interpreter import answer_calls

answer_calls(__name__)
