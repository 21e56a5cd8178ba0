"""Events become logs, in English or Korean, for people or machines."""
