"""What several questions share: traffic that is the same each time, processes and what they use up."""
