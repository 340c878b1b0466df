"""Model cards: what a package offers and which of it was asked for."""
