"""``make bench``: what publish and read cost on this machine, beside what stands under and next to them.

It starts everything that it compares, runs each load for a bounded time in every round, and prints medians and the
ratios that the project promises. Nothing of it outlives the run.
"""
