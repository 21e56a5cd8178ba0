"""Jobs on DynamoDB: their rows, batches, events, points and files."""
