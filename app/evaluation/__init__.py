"""Evaluates what a running server says: it is listened to, and compared with its text."""
