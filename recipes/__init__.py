"""Recipes of the weights that ship with the server."""
