"""The read API as GraphQL: what several calls of the HTTP API answer, in one."""
