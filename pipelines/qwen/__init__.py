"""What the pipelines for Qwen's checkpoints share."""
