"""Telling a page from a refusal: what the site answered, read as a person would read it."""

from scrapeyard.engines.blocks.recognise import glance, recognise, recognise_any, recognise_closely
from scrapeyard.engines.blocks.rules import Block, BlockKind
from scrapeyard.engines.blocks.shell import EMPTY_SHELL, adds_content, recognise_shell

__all__ = [
    "EMPTY_SHELL",
    "Block",
    "BlockKind",
    "adds_content",
    "glance",
    "recognise",
    "recognise_any",
    "recognise_closely",
    "recognise_shell",
]
