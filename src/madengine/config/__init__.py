"""Everything a person configures, resolved once into frozen values."""
