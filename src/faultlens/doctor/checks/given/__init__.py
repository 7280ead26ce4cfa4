"""What the user names: custom ops and saved models."""
