"""Where rows of jobs stand on DynamoDB, and how the row of a job is changed."""
