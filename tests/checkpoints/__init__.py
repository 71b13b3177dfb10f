"""Tiny seeded checkpoints of real architectures, made from their references' own classes."""
