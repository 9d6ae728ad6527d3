"""What a pipeline file declares: its model, its checks and its loader."""
