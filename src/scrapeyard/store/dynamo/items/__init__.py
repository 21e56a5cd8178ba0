"""Items of jobs on DynamoDB: what they are given, how they ended, and which wait."""
