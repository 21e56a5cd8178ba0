"""What a page gives: its fields, its forms, and what selectors find in it."""
