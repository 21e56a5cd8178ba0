"""What the store knows of jobs apart from any database: the rules that each of them keeps."""
