"""Tables on the private server that speaks as Amazon DynamoDB: the same ministack that speaks as SQS."""

from itertools import count

from tests.services.sqs import REGION, SqsServer

_NUMBERS = count(1)


class DynamoServer(SqsServer):
    """A server of a cluster's own. It keeps its tables in memory: stop it only when they are no longer needed."""

    @property
    def url(self) -> str:
        """As `database_url` names it."""
        return table_url(self, "scrapeyard")


def table_url(server: SqsServer, table: str) -> str:
    """As `database_url` names it."""
    return f"dynamodb+http://test:testtest@127.0.0.1:{server.port}/{REGION}/{table}"


def new_table_url(server: SqsServer) -> str:
    """A table that does not exist yet."""
    return table_url(server, f"table-{next(_NUMBERS)}")
