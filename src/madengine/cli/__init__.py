"""What a person types and sees: one file per command."""
