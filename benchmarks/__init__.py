"""Benchmarks: each against a peer, in one run, as a ratio."""
