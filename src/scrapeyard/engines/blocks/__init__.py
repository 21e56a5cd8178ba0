"""Telling a page from a refusal: what the site answered, read as a person would read it."""

from scrapeyard.engines.blocks.block import Block, BlockKind
from scrapeyard.engines.blocks.recognise import recognise

__all__ = ["Block", "BlockKind", "recognise"]
