"""Learned patterns: from a few answered pages of a site, rules that read the same fields from its other pages."""

from scrapeyard_sdk.extract.patterns.learning import Example, learn
from scrapeyard_sdk.extract.patterns.pattern import FoundField, Pattern, PatternField, PatternInvalid, PatternRule

__all__ = ["Example", "FoundField", "Pattern", "PatternField", "PatternInvalid", "PatternRule", "learn"]
