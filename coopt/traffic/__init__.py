"""Traffic of an iteration: bytes between GPUs, and the part of the network that carries them."""

from coopt._interpreter import answer_calls

answer_calls(__name__)
