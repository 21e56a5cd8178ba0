"""Encrypts secrets before they are stored: data keys seal values, and a master key wraps the data keys."""
