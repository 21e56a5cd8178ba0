"""The operations: what each does in the browser."""
