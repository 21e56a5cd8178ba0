"""Telling a page from a refusal: what the site answered, read as a person would read it."""

from scrapeyard.engines.blocks.recognise import recognise
from scrapeyard.engines.blocks.rules import Block, BlockKind

__all__ = ["Block", "BlockKind", "recognise"]
