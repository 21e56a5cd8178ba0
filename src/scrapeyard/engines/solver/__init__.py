"""A browser of somebody else's that passes challenges for us, and the clearance that it brings back."""
