"""Data to a schema: what a page says in machine form, the site's learned pattern, a model, and selectors at last."""
